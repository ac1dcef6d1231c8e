"""POSTs that name themselves are carried out once, and answered the same each time."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest
from scheduler.idempotency import KEPT
from scheduler.store.connection import Database

from tests.api.client import MINUTELY, Answer, Client
from tests.api.conftest import Connect
from tests.api.things import CHANGES, HOURLY, Thing, a_run_that_failed
from tests.world import World, wait_until_blocked


def a_labelled_schedule(client: Client, world: World) -> Thing:
    client.create(labels={"team": "billing"})
    other = client.create(labels={"state": "paused"})
    client.post(f"/v1/schedules/{other['id']}/pause")
    return Thing(path="/v1/schedules", meanwhile=client.create)


def some_that_failed(client: Client, world: World) -> Thing:
    a_run_that_failed(client, world)
    return Thing(path="/v1/redeliveries", meanwhile=client.create)


# Every POST: what there is before, what its path ends in, and its body.
POSTS = {
    **{path: case for (method, path), case in CHANGES.items() if method == "POST"},
    "/v1/schedules": (lambda client, world: Thing(path="/v1/schedules", meanwhile=client.create), "", HOURLY),
    "/v1/schedules/preview": (a_labelled_schedule, "/preview", {"rate": "1 hour"}),
    "/v1/schedules/pause": (a_labelled_schedule, "/pause", {"labels": {"team": "billing"}}),
    "/v1/schedules/resume": (a_labelled_schedule, "/resume", {"labels": {"state": "paused"}}),
    "/v1/redeliveries": (some_that_failed, "", {"filter": {"state": "failed"}}),
    "/v1/keys": (lambda client, world: Thing(path="/v1/keys", meanwhile=client.create), "", {"scopes": ["read"]}),
}


def count(world: World) -> int:
    return int(world.sql("select count(*) from schedule")[0][0])


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


@pytest.fixture(params=POSTS)
def post(client: Client, world: World, request: pytest.FixtureRequest) -> Callable[[], Answer]:
    """Sends a good request to a route, under the key `one`."""
    admin = client.may("read write admin")
    make, suffix, document = POSTS[request.param]
    path = make(admin, world).path + suffix
    return lambda: admin.post(path, document, Idempotency_Key="one")


def everything(world: World) -> list[Any]:
    """All that a request may change."""
    tables = ("schedule", "schedule_version", "job_run", "api_key", "signing_secret", "idempotent_request")
    return [sorted(map(str, world.sql(f"select * from {table}"))) for table in tables]


def test_these_are_all_posts(modules: dict[str, ModuleType]) -> None:
    assert set(POSTS) == {route.path for route in modules["routes"].ROUTES if route.method == "POST"}


def test_every_post_is_answered_again_and_done_once(post: Callable[[], Answer], world: World) -> None:
    first = post()
    done = everything(world)
    world.clock.move(seconds=1)
    again = post()
    assert first.status < 300
    assert (again.status, again.document) == (first.status, first.document)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert everything(world) == done


def test_every_post_waits_for_the_one_under_its_key_and_does_nothing_after_it(
    post: Callable[[], Answer], world: World, connect: Callable[[], Database]
) -> None:
    other, words = connect(), {"tenant_id": world.tenant_id, "key": "one", "now": world.clock.now}
    with ThreadPoolExecutor(max_workers=1) as senders:
        with other.transaction() as transaction:
            transaction.run("idempotency.claim", fingerprint=bytes(32), forgotten=world.clock.now - KEPT, **words)
            before = everything(world)
            sent = senders.submit(post)
            wait_until_blocked(world)
            assert everything(world) == before
        # What it stood for was another request.
        assert sent.result(timeout=30).status == 422
    assert everything(world)[:-1] == before[:-1]


def test_every_post_that_can_not_store_its_answer_has_done_nothing(post: Callable[[], Answer], world: World) -> None:
    world.sql("create function refuse() returns trigger language plpgsql as 'begin raise exception ''full''; end'")
    world.sql("create trigger refuse before update on idempotent_request for each row execute function refuse()")
    before = everything(world)
    assert post().status == 500
    assert everything(world) == before
