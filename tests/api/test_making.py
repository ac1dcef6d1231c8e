"""Schedules put under their names, runs asked for by hand, and many schedules changed by a label."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scheduler.calendar.zones import tzdata_version
from scheduler.labels import Labelled
from scheduler.look_ahead import LOOK_AHEAD
from scheduler.schedules import Definition, Pause
from scheduler.scheduling import Scheduling
from scheduler.store.connection import Database, Row
from scheduler.timing import Timing

from tests.api.client import MINUTELY, Client
from tests.api.conftest import Connect
from tests.world import RETENTION, World, wait_until_blocked

HOURLY = {"rate": "1 hour", "url": "https://hook.example/path"}


def scheduled(client: Client, schedule: dict[str, Any]) -> list[str]:
    runs = client.get(f"/v1/schedules/{schedule['id']}/runs").document["runs"]
    return [run["scheduled_for"] for run in reversed(runs)]


def test_a_name_is_put_once_and_then_replaced_as_a_whole(client: Client) -> None:
    path = "/v1/schedules/by-name/nightly%20report"
    made = client.put(path, HOURLY | {"payload": [1], "labels": {"a": "b"}})
    assert (made.status, made.document["name"]) == (201, "nightly report")
    assert made.headers["Location"] == f"/live/v1/schedules/{made.document['id']}"
    replaced = client.put(path, MINUTELY)
    assert (replaced.status, replaced.document["id"]) == (200, made.document["id"])
    assert (replaced.document["payload"], replaced.document["labels"]) == (None, {})
    assert client.put(path, MINUTELY).document["version"] == 2
    assert client.get(path).document == replaced.document


def test_a_put_says_no_other_name(client: Client) -> None:
    assert client.put("/v1/schedules/by-name/a", HOURLY | {"name": "a"}).status == 201
    refused = client.put("/v1/schedules/by-name/a", HOURLY | {"name": "b"})
    assert (refused.status, refused.pointers) == (400, ["/name"])


@pytest.mark.parametrize("name", ["%25", "a%00b", "x" * 201, "%0A"])
def test_a_name_that_is_none_is_not_found(client: Client, name: str) -> None:
    assert client.put(f"/v1/schedules/by-name/{name}", HOURLY).status == 404


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=200))
@example("\u202e")
@example("a\u200bb")
@example("caf\u00e9")
@example("cafe\u0301")
@example("a/b?c#d;e")
def test_every_name_that_a_schedule_may_have_finds_it(client: Client, name: str) -> None:
    made = client.post("/v1/schedules", HOURLY | {"name": name})
    path = "/v1/schedules/by-name/" + quote(name, safe="")
    if made.status == 400:
        assert name != name.strip()
        assert client.put(path, HOURLY).status == 404
        return
    found = client.get(path)
    if "%" in name:
        assert found.status == 404
    else:
        assert found.document["id"] == made.document["id"]
        assert client.put(path, HOURLY).status == 200
    client.delete(f"/v1/schedules/{made.document['id']}")


def test_puts_of_one_name_at_once_make_one_schedule(
    connect_api: Connect, environment: dict[str, str], client: Client, world: World
) -> None:
    others = [connect_api(environment) for _ in range(4)]
    with ThreadPoolExecutor(max_workers=len(others)) as senders:
        answers = list(senders.map(lambda each: each.put("/v1/schedules/by-name/one", HOURLY), others))
    assert sorted(answer.status for answer in answers) == [200, 200, 200, 201]
    assert world.sql("select count(*) from schedule") == [[1]]


def test_a_run_is_made_now_at_a_second_of_its_own(client: Client, world: World) -> None:
    made = client.create(cron="* * * * *")
    path = f"/v1/schedules/{made['id']}/trigger"
    first = client.post(path)
    assert (first.status, first.document["scheduled_for"]) == (201, "2026-12-01T09:00:01Z")
    assert (first.document["trigger"], first.document["attempts"]) == ("manual", [])
    assert first.headers["Location"] == f"/live/v1/runs/{first.document['id']}"
    assert client.post(path).document["scheduled_for"] == "2026-12-01T09:00:02Z"
    assert world.sql("select state from job_run where trigger = 'manual'") == [["queued"], ["queued"]]


def test_a_run_by_hand_takes_no_occurrences_place(client: Client, world: World) -> None:
    made = client.create(cron="* * * * *")
    world.clock.set("09:00:59")
    assert client.post(f"/v1/schedules/{made['id']}/trigger").document["scheduled_for"] == "2026-12-01T09:01:01Z"
    hourly = client.create(cron="0 * * * *")
    world.clock.set("09:59:59")
    assert client.post(f"/v1/schedules/{hourly['id']}/trigger").document["scheduled_for"] == "2026-12-01T10:00:01Z"
    world.tick()
    assert "2026-12-01T10:00:00Z" in scheduled(client, hourly)


def test_a_paused_schedule_runs_by_hand_and_a_deleted_one_does_not(client: Client, world: World) -> None:
    path = f"/v1/schedules/{client.create(rate='1 hour')['id']}"
    client.post(f"{path}/pause")
    assert client.post(f"{path}/trigger").status == 201
    client.delete(path)
    assert client.post(f"{path}/trigger").status == 404


def test_a_run_by_hand_is_one_run_under_one_idempotency_key(client: Client, world: World) -> None:
    path = f"/v1/schedules/{client.create(rate='1 hour')['id']}/trigger"
    runs = [client.post(path, Idempotency_Key="now").document["id"] for _ in range(2)]
    assert runs[0] == runs[1]
    assert world.sql("select count(*) from job_run") == [[1]]


def test_a_stretch_of_the_past_is_made_once(client: Client, world: World) -> None:
    made = client.create(cron="*/10 * * * *")
    path = f"/v1/schedules/{made['id']}/backfill"
    stretch = {"from": "2026-12-01T08:00:00Z", "until": "2026-12-01T08:30:00Z"}
    assert client.post(path, stretch | {"dry_run": True}).document == {"occurrences": 3, "created": 3, "dry_run": True}
    assert scheduled(client, made) == []
    assert client.post(path, stretch).document == {"occurrences": 3, "created": 3, "dry_run": False}
    assert client.post(path, stretch | {"until": "2026-12-01T08:40:00Z"}).document["created"] == 1
    assert scheduled(client, made) == [f"2026-12-01T08:{minute}0:00Z" for minute in range(4)]
    rows = world.sql("select distinct trigger, state, due_at > scheduled_for from job_run")
    assert rows == [["backfill", "queued", True]]


@pytest.mark.parametrize(
    ("stretch", "pointers"),
    [
        ({}, ["/from", "/until"]),
        ({"from": "2026-12-01T08:00:00Z", "until": "2026-12-01T10:00:00Z"}, ["/until"]),
        ({"from": "2026-12-01T08:00:00Z", "until": "2026-12-01T08:00:00Z"}, ["/until"]),
        ({"from": "2026-10-01T08:00:00Z", "until": "2026-12-01T08:00:00Z"}, ["/from"]),
        ({"from": "2026-11-28T00:00:00Z", "until": "2026-12-01T08:00:00Z"}, ["/until"]),
        ({"from": "2026-12-01T08:00:00Z", "until": "2026-12-01T08:30:00Z", "most": 29}, ["/until"]),
        ({"from": "2026-12-01T08:00:00Z", "until": "2026-12-01T08:30:00Z", "most": 1001}, ["/most"]),
    ],
)
def test_a_stretch_that_can_not_be_made_makes_nothing(
    client: Client, world: World, stretch: dict[str, Any], pointers: list[str]
) -> None:
    made = client.create(cron="* * * * *")
    world.sql("delete from job_run")
    answer = client.post(f"/v1/schedules/{made['id']}/backfill", stretch)
    assert (answer.status, answer.pointers) == (400, pointers)
    assert world.sql("select count(*) from job_run") == [[0]]


def test_all_schedules_of_a_label_are_paused_and_resumed(client: Client, world: World) -> None:
    made = [client.create(labels={"team": team}) for team in ("a", "a", "b")]
    answer = client.post("/v1/schedules/pause", {"labels": {"team": "a"}, "reason": "holidays"}, Idempotency_Key="p")
    assert answer.document == {"matched": 2, "changed": 2, "remaining": 0}
    assert (
        client.post(
            "/v1/schedules/pause", {"labels": {"team": "a"}, "reason": "holidays"}, Idempotency_Key="p"
        ).document
        == answer.document
    )
    assert client.post("/v1/schedules/pause", {"labels": {"team": "a"}}).document["matched"] == 0
    states = [client.get(f"/v1/schedules/{each['id']}").document["status"] for each in made]
    assert states == ["paused", "paused", "active"]
    world.clock.move(seconds=5)
    assert client.post("/v1/schedules/resume", {"labels": {"team": "a"}}).document["changed"] == 2
    assert client.get("/v1/schedules", status="active").document["schedules"].__len__() == 3


@pytest.mark.parametrize("body", [{}, {"labels": {}}, {"labels": {"a b": "c"}}, {"labels": None}])
def test_no_label_means_no_schedule(client: Client, body: dict[str, Any]) -> None:
    client.create()
    assert client.post("/v1/schedules/pause", body).status == 400
    assert client.get("/v1/schedules", status="active").document["schedules"]


@pytest.fixture
def two(client: Client, world: World) -> tuple[str, str]:
    """Two labelled schedules; the one whose calendar comes first is itself the last."""
    ids = UUID(int=2**128 - 1), UUID(int=1)
    for zone, each in zip(("UTC", "Europe/Berlin"), ids, strict=True):
        definition = Definition(
            name=None,
            timing=Timing(cron="* * * * *", timezone=zone),
            url="https://hook.example/",
            headers=(),
            payload=None,
            labels=(("team", "a"),),
        )
        world.scheduling.create(world.tenant_id, each, definition, changed_by="test")
    world.clock.set("09:01:30")
    return str(ids[0]), str(ids[1])


@contextmanager
def a_tick_that_waits(world: World, database: Database) -> Iterator[Callable[[int], list[Row]]]:
    """A planner that takes so many calendars in their order, waiting for each, and keeps them."""
    words: dict[str, object] = {"tzdata_version": tzdata_version(), "left_alone": []}
    with database.transaction() as transaction:
        transaction.run("planning.bound_wait")
        yield lambda most: transaction.run(
            "planning.wait_for_calendars", horizon=world.clock.now + LOOK_AHEAD, most=most, **words
        )


def test_a_change_of_many_holds_no_calendar_while_it_waits_for_one_before_it(
    client: Client, world: World, two: tuple[str, str], connect: Callable[[], Database]
) -> None:
    with ThreadPoolExecutor(max_workers=1) as changers:
        with a_tick_that_waits(world, connect()) as take:
            assert len(take(1)) == 1
            paused = changers.submit(client.post, "/v1/schedules/pause", {"labels": {"team": "a"}})
            wait_until_blocked(world)
            assert len(take(2)) == 2
        assert paused.result(timeout=30).document == {"matched": 2, "changed": 2, "remaining": 0}


def test_a_change_of_many_leaves_out_what_was_given_another_calendar_meanwhile(
    client: Client, world: World, two: tuple[str, str], connect: Callable[[], Database]
) -> None:
    other = Scheduling(database=connect(), clock=world.clock, retention=RETENTION)
    with ThreadPoolExecutor(max_workers=1) as changers:
        with a_tick_that_waits(world, connect()) as take:
            take(1)
            paused = changers.submit(client.post, "/v1/schedules/pause", {"labels": {"team": "a"}})
            wait_until_blocked(world)

            def later(old: Definition) -> Definition:
                return replace(old, timing=Timing(cron="30 9 * * *"))

            other.edit(world.tenant_id, UUID(two[1]), later, changed_by="test")
        assert paused.result(timeout=30).document == {"matched": 2, "changed": 1, "remaining": 1}
    assert [client.get(f"/v1/schedules/{each}").document["status"] for each in two] == ["paused", "active"]


def test_a_tenants_changes_of_many_hold_calendars_one_after_the_other(
    client: Client, world: World, two: tuple[str, str], connect: Callable[[], Database]
) -> None:
    database = connect()
    other = Labelled(
        scheduling=Scheduling(database=database, clock=world.clock, retention=RETENTION),
        tenant_id=world.tenant_id,
        labels={"team": "a"},
        changed_by="test",
        more_time=lambda: True,
    )
    client.create(labels={"team": "b"})
    with database.joined():
        other.pause(Pause())
        # Of other schedules, whose rows nobody holds.
        assert client.post("/v1/schedules/pause", {"labels": {"team": "b"}}).status == 409
    assert client.post("/v1/schedules/pause", {"labels": {"team": "b"}}).document["changed"] == 1
