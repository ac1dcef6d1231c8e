"""Changes that are made only to the version that was read, and POSTs that are carried out once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.api.client import MINUTELY, Client
from tests.api.conftest import Connect
from tests.world import World

HOURLY = {"rate": "1 hour", "url": "https://hook.example/path"}


def count(world: World) -> int:
    return int(world.sql("select count(*) from schedule")[0][0])


def test_a_schedule_is_read_with_its_version_as_etag(client: Client) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    assert client.get(path).headers["ETag"] == '"1"'
    assert client.patch(path, {"name": "a"}).headers["ETag"] == '"2"'
    assert client.get(path).headers["ETag"] == '"2"'


def test_other_reads_have_a_weak_etag_that_changes_with_their_content(client: Client) -> None:
    empty = client.get("/v1/schedules").headers["ETag"]
    assert empty.startswith('W/"')
    assert client.get("/v1/schedules").headers["ETag"] == empty
    client.create()
    assert client.get("/v1/schedules").headers["ETag"] != empty


CHANGES: dict[str, Callable[[Client, str, str], Any]] = {
    "edit": lambda client, path, tag: client.patch(path, {"name": "mine"}, If_Match=tag),
    "pause": lambda client, path, tag: client.post(f"{path}/pause", If_Match=tag),
    "resume": lambda client, path, tag: client.post(f"{path}/resume", If_Match=tag),
    "delete": lambda client, path, tag: client.delete(path, If_Match=tag),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("tag", ['"1"', '"3"', 'W/"2"', '"other"', '"1", "3"'])
def test_a_change_to_a_version_that_is_not_there_changes_nothing(
    client: Client, change: Callable[[Client, str, str], Any], tag: str
) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    edited = client.patch(path, {"name": "theirs"}).document
    refused = change(client, path, tag)
    assert (refused.status, refused.document["type"]) == (412, "urn:problem-type:carillon:precondition-failed")
    assert client.get(path).document == edited


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("tag", ['"1"', "*", '"9", "1"'])
def test_a_change_to_the_version_that_was_read_is_made(
    client: Client, change: Callable[[Client, str, str], Any], tag: str
) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    assert change(client, path, tag).status < 300


@pytest.mark.parametrize("tag", ["1", '"1', "", '"1" "2"'])
def test_a_tag_that_is_none_is_refused(client: Client, tag: str) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    answer = client.delete(path, If_Match=tag)
    assert (answer.status, answer.document["errors"][0]["header"]) == (400, "If-Match")


def test_a_post_that_is_sent_again_is_answered_again_and_done_once(client: Client, world: World) -> None:
    first = client.post("/v1/schedules", HOURLY, Idempotency_Key="one")
    again = client.post("/v1/schedules", HOURLY, Idempotency_Key="one")
    assert (again.status, again.document) == (201, first.document)
    assert again.headers["Location"] == first.headers["Location"]
    assert (first.headers.get("Idempotent-Replayed"), again.headers["Idempotent-Replayed"]) == (None, "true")
    assert again.headers["X-Request-Id"] != first.headers["X-Request-Id"]
    assert count(world) == 1


def test_the_first_run_of_a_schedule_created_under_a_key_is_sent_at_once(client: Client, world: World) -> None:
    client.post("/v1/schedules", MINUTELY, Idempotency_Key="one")
    assert world.sql("select state from job_run") == [["queued"], ["queued"]]


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/schedules", HOURLY | {"name": "other"}), ("/v1/redeliveries", HOURLY)]
)
def test_a_key_with_another_request_is_refused(client: Client, world: World, path: str, body: dict[str, Any]) -> None:
    client.post("/v1/schedules", HOURLY, Idempotency_Key="one")
    refused = client.post(path, body, Idempotency_Key="one")
    assert (refused.status, refused.document["type"]) == (422, "urn:problem-type:carillon:idempotency-key-reused")
    assert count(world) == 1


def test_a_key_is_its_tenants_own(client: Client, world: World) -> None:
    other = client.stranger()
    world.sql(
        "insert into tenant (id, name, status, created_at) values (:id, 'B', 'active', '2026-01-01Z')",
        id=other.tenant_id,
    )
    made = [each.post("/v1/schedules", HOURLY, Idempotency_Key="one").document["id"] for each in (client, other)]
    assert made[0] != made[1]


def test_a_key_is_forgotten_after_a_day(client: Client, world: World) -> None:
    client.post("/v1/schedules", HOURLY, Idempotency_Key="one")
    world.clock.move(hours=24, seconds=-1)
    assert client.post("/v1/schedules", HOURLY, Idempotency_Key="one").headers["Idempotent-Replayed"] == "true"
    world.clock.move(seconds=1)
    client.post("/v1/schedules", HOURLY, Idempotency_Key="one")
    assert count(world) == 2


def test_what_failed_is_not_kept_and_may_be_sent_again_under_its_key(client: Client, world: World) -> None:
    path = f"/v1/schedules/{client.create(name='taken')['id']}"
    assert client.post("/v1/schedules", HOURLY | {"name": "taken"}, Idempotency_Key="one").status == 409
    client.delete(path)
    assert client.post("/v1/schedules", HOURLY | {"name": "taken"}, Idempotency_Key="one").status == 201


def test_a_get_and_a_patch_know_no_keys(client: Client) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    for name in ("a", "b"):
        assert client.patch(path, {"name": name}, Idempotency_Key="one").document["name"] == name


@pytest.mark.parametrize("key", ["", "x" * 256, "ü", "a\nb"])
def test_a_key_that_is_none_is_refused(client: Client, key: str) -> None:
    answer = client.post("/v1/schedules", HOURLY, Idempotency_Key=key)
    assert (answer.status, answer.document["errors"][0]["header"]) == (400, "Idempotency-Key")


def test_requests_under_one_key_at_once_are_one_request(
    connect_api: Connect, environment: dict[str, str], client: Client, world: World
) -> None:
    others = [connect_api(environment) for _ in range(6)]
    ready = threading.Barrier(len(others))

    def send(one: Client) -> Any:
        ready.wait(timeout=10)
        return one.post("/v1/schedules", HOURLY, Idempotency_Key="one")

    with ThreadPoolExecutor(max_workers=len(others)) as senders:
        answers = list(senders.map(send, others))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.document["id"] for answer in answers}) == 1
    assert sum("Idempotent-Replayed" in answer.headers for answer in answers) == len(others) - 1
    assert count(world) == 1
