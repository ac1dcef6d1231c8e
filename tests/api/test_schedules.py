"""Schedules over HTTP: created, read, edited, paused, resumed and deleted."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.api.client import Client
from tests.api.conftest import Connect
from tests.world import World

URL = "https://hook.example/path"


def test_a_schedule_is_answered_with_all_that_it_is(client: Client) -> None:
    made = client.create(name="minutely", payload={"a": [1, 2.5, "ü"]}, headers={"X-Tag": "a b"})
    assert made | {"id": "", "created_at": "", "updated_at": ""} == {
        "id": "",
        "name": "minutely",
        "description": None,
        "labels": {},
        "cron": "* * * * *",
        "timezone": "UTC",
        "dst": {"gap": "shift", "overlap": "first"},
        "start_at": None,
        "end_at": None,
        "max_runs": None,
        "jitter_seconds": 0,
        "misfire": {"policy": "all", "grace_seconds": 60, "cap": 100},
        "exclude": {"dates": [], "lists": [], "on_excluded": "skip"},
        "url": URL,
        "headers": {"X-Tag": "a b"},
        "payload": {"a": [1, 2.5, "ü"]},
        "retry": {
            "backoff": "exponential",
            "base_seconds": 15,
            "factor": 3.0,
            "cap_seconds": 10800,
            "max_attempts": 12,
            "max_age_seconds": 86400,
        },
        "retry_client_errors": True,
        "overlap": "allow",
        "after_outage": "all",
        "status": "active",
        "pause": None,
        "runs_left": None,
        "next_run_at": "2026-12-01T09:01:00Z",
        "version": 1,
        "created_at": "",
        "updated_at": "",
    }
    assert made["created_at"] == made["updated_at"] == "2026-12-01T09:00:00.500000Z"


def test_a_creation_says_where_the_schedule_is_and_it_is_there(client: Client) -> None:
    made = client.post("/v1/schedules", {"rate": "1 hour", "url": URL})
    path = f"/v1/schedules/{made.document['id']}"
    assert made.headers["Location"] == f"/live{path}"
    assert client.get(path).document == made.document


@pytest.mark.parametrize(
    ("fields", "next_run_at"),
    [
        ({"cron": "30 2 * * *", "timezone": "Europe/Paris"}, "2026-12-02T01:30:00Z"),
        ({"rate": "15 minutes"}, "2026-12-01T09:15:00Z"),
        ({"rate": "15 minutes", "start_at": "2026-12-01T12:00:07+01:00"}, "2026-12-01T11:00:07Z"),
        ({"at": "2026-12-24T18:00:00", "timezone": "Europe/Berlin"}, "2026-12-24T17:00:00Z"),
        ({"cron": "0 9 * * *", "start_at": "2026-12-25T00:00:00Z"}, "2026-12-25T09:00:00Z"),
        ({"cron": "0 9 * * *", "end_at": "2026-12-02T09:00:00Z"}, None),
    ],
)
def test_the_next_run_is_the_first_occurrence_in_the_window(
    client: Client, fields: dict[str, str], next_run_at: str | None
) -> None:
    assert client.create(**fields)["next_run_at"] == next_run_at


def test_a_rate_without_a_start_stays_where_it_began(client: Client, world: World) -> None:
    made = client.create(rate="10 minutes")
    world.clock.move(minutes=25)
    path = f"/v1/schedules/{made['id']}"
    client.post(f"{path}/pause")
    client.patch(path, {"name": "steady"})
    assert client.post(f"{path}/resume").document["next_run_at"] == "2026-12-01T09:30:00Z"


def test_null_is_the_same_as_absent(client: Client) -> None:
    optional = ("name", "rate", "at", "timezone", "dst", "start_at", "end_at", "headers", "payload")
    optional += ("max_runs", "jitter_seconds", "misfire", "exclude")
    optional += ("retry", "retry_client_errors", "overlap", "after_outage")
    bare, spelled = client.create(), client.create(cron="* * * * *", **dict.fromkeys(optional))
    assert bare | {"id": ""} == spelled | {"id": ""}


@pytest.mark.parametrize("payload", [{}, [], "text", 0, False, "\x00 and \u2028", {"deep": [[[{"n": -(2**63)}]]]}])
def test_any_json_is_a_payload_and_is_stored_as_its_compact_utf8(client: Client, world: World, payload: Any) -> None:
    assert client.create(payload=payload)["payload"] == payload
    stored = world.sql("select payload from schedule_version")[0][0]
    assert stored == json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode()


def test_runs_within_the_next_minutes_are_sent_at_once(
    client: Client, world: World, waiting: Callable[[], int]
) -> None:
    client.create()
    assert world.sql("select state from job_run") == [["queued"], ["queued"]]
    assert waiting() == 2


def test_a_schedule_is_created_though_its_queue_can_not_be_reached(
    connect_api: Connect, environment: dict[str, str], world: World
) -> None:
    client = connect_api(environment | {"QUEUE_URL": environment["QUEUE_URL"] + "-gone"})
    client.create()
    assert world.sql("select state from job_run") == [["planned"], ["planned"]]


def test_the_list_is_a_page_at_a_time_oldest_first(client: Client, world: World) -> None:
    names = [f"s{number}" for number in range(5)]
    for name in names:
        client.create(name=name)
        world.clock.move(seconds=1)
    seen: list[str] = []
    query = {"limit": "2"}
    while True:
        page = client.get("/v1/schedules", **query).document
        assert len(page["schedules"]) <= 2
        seen += [schedule["name"] for schedule in page["schedules"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == names


def test_a_listed_schedule_is_the_one_that_get_answers(client: Client) -> None:
    made = [client.create(rate="1 hour"), client.create(cron="0 0 1 * *")]
    client.post(f"/v1/schedules/{made[0]['id']}/pause")
    listed = client.get("/v1/schedules").document["schedules"]
    assert listed == [client.get(f"/v1/schedules/{schedule['id']}").document for schedule in listed]
    assert len(listed) == 2


def test_an_edit_keeps_what_it_leaves_out(client: Client, world: World) -> None:
    made = client.create(name="a", payload=[1], headers={"X-A": "1"}, timezone="Europe/Paris")
    world.clock.move(seconds=3)
    edited = client.patch(f"/v1/schedules/{made['id']}", {"url": "https://hook.example/other"}).document
    changed = {name for name in made if made[name] != edited[name]}
    assert changed == {"url", "version", "updated_at"}
    assert edited["version"] == 2


@pytest.mark.parametrize(("kind", "text"), [("cron", "0 12 * * *"), ("rate", "2 hours"), ("at", "2026-12-24T18:00:00")])
def test_a_timing_kind_replaces_the_former_one(client: Client, kind: str, text: str) -> None:
    made = client.create(cron="*/5 * * * *")
    edited = client.patch(f"/v1/schedules/{made['id']}", {kind: text}).document
    assert {name: edited[name] for name in ("cron", "rate", "at") if name in edited} == {kind: text}


def test_null_clears_an_optional_field(client: Client) -> None:
    given = {
        "name": "n",
        "timezone": "Europe/Paris",
        "dst": {"gap": "skip", "overlap": "both"},
        "start_at": "2026-12-01T10:00:00Z",
        "end_at": "2027-12-01T10:00:00Z",
        "headers": {"X-A": "1"},
        "payload": {"a": 1},
    }
    made, bare = client.create(**given), client.create()
    cleared = client.patch(f"/v1/schedules/{made['id']}", dict.fromkeys(given)).document
    assert {name: cleared[name] for name in given} == {name: bare[name] for name in given}


def test_an_edit_that_does_not_touch_the_payload_leaves_its_bytes_alone(client: Client, world: World) -> None:
    made = client.create()
    odd = b'{"spaced" : 1.50}'
    world.sql("update schedule_version set payload = :odd", odd=odd)
    client.patch(f"/v1/schedules/{made['id']}", {"name": "b"})
    assert world.scheduling.get(world.tenant_id, UUID(made["id"])).definition.payload == odd


def test_an_edit_that_changes_nothing_makes_no_version(client: Client) -> None:
    made = client.create(name="same")
    assert client.patch(f"/v1/schedules/{made['id']}", {"name": "same", "cron": "* * * * *"}).document == made


def test_a_paused_schedule_has_no_next_run_and_resumes(client: Client) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    paused = client.post(f"{path}/pause").document
    assert (paused["status"], paused["next_run_at"]) == ("paused", None)
    resumed = client.post(f"{path}/resume").document
    assert (resumed["status"], resumed["next_run_at"]) == ("active", "2026-12-01T09:01:00Z")


def test_a_schedule_that_was_disabled_resumes(client: Client, world: World) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    world.sql("update schedule set status = 'disabled'")
    disabled = client.get(path).document
    assert (disabled["status"], disabled["next_run_at"]) == ("disabled", None)
    assert client.post(f"{path}/resume").document["status"] == "active"


def test_a_deleted_schedule_is_gone_and_its_name_free(client: Client) -> None:
    made = client.create(name="once")
    path = f"/v1/schedules/{made['id']}"
    assert client.delete(path).status == 204
    for answer in (
        client.get(path),
        client.patch(path, {"name": "x"}),
        client.delete(path),
        client.get(f"{path}/runs"),
    ):
        assert answer.status == 404
    assert client.get("/v1/schedules").document["schedules"] == []
    client.create(name="once")


def test_a_name_is_taken_once(client: Client) -> None:
    client.create(name="taken")
    other = client.create(name="other")
    assert client.post("/v1/schedules", {"name": "taken", "rate": "1 hour", "url": URL}).status == 409
    assert client.patch(f"/v1/schedules/{other['id']}", {"name": "taken"}).status == 409


def test_a_one_off_that_is_past_is_refused_and_one_just_past_runs(client: Client, world: World) -> None:
    late = {"at": "2026-12-01T08:58:00", "url": URL}
    refused = client.post("/v1/schedules", late)
    assert (refused.status, refused.pointers) == (400, ["/at"])
    world.clock.now -= timedelta(seconds=61)
    client.create(**late)
    assert world.sql("select state from job_run") == [["queued"]]


def test_versions_name_the_key_that_changed_the_schedule(client: Client, world: World) -> None:
    client.post(f"/v1/schedules/{client.create()['id']}/pause")
    keys = {row[0] for row in world.sql("select changed_by from schedule_version")}
    assert keys == {"0b7a5a0e-3a5f-4f0e-9d6c-8f2b1f4f5a11"}


LADDER = {"backoff": "ladder", "delays_seconds": [5, 300], "max_age_seconds": 7200}


def test_a_schedule_keeps_how_it_is_delivered(client: Client) -> None:
    wanted = {"retry": LADDER, "retry_client_errors": False, "overlap": "queue", "after_outage": "latest"}
    made = client.create(**wanted)
    assert {name: made[name] for name in wanted} == wanted
    path = f"/v1/schedules/{made['id']}"
    renamed = client.patch(path, {"name": "other"}).document
    assert {name: renamed[name] for name in wanted} == wanted
    changed = client.patch(path, {"retry": None, "overlap": "skip", "retry_client_errors": True}).document
    assert (changed["retry"]["max_attempts"], changed["overlap"], changed["after_outage"]) == (12, "skip", "latest")
    assert changed["retry_client_errors"] is True


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"retry": {"backoff": "ladder"}}, "/retry/delays_seconds"),
        ({"retry": {"backoff": "never"}}, "/retry/backoff"),
        ({"retry": {"max_attempts": 0}}, "/retry/max_attempts"),
        ({"retry": {"base_seconds": 60, "cap_seconds": 30}}, "/retry/cap_seconds"),
        ({"retry": []}, "/retry"),
        ({"retry_client_errors": 1}, "/retry_client_errors"),
        ({"overlap": "maybe"}, "/overlap"),
        ({"after_outage": ""}, "/after_outage"),
    ],
)
def test_a_bad_way_to_deliver_is_refused_where_it_stands(client: Client, fields: dict[str, Any], pointer: str) -> None:
    answer = client.post("/v1/schedules", {"cron": "* * * * *", "url": URL} | fields)
    assert (answer.status, answer.pointers) == (400, [pointer])
