"""Schedules and runs are found by what they are, do and are called."""

import itertools
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.api.client import Client
from tests.world import World


def pages(client: Client, **query: str) -> list[list[dict[str, Any]]]:
    """All pages of the schedules that a query finds."""
    found: list[list[dict[str, Any]]] = []
    while True:
        page = client.get("/v1/schedules", **query).document
        found.append(page["schedules"])
        if page["next_cursor"] is None:
            return found
        query["cursor"] = page["next_cursor"]


def names(client: Client, **query: str) -> list[str]:
    """The names of all schedules that a query finds, over all its pages."""
    return [schedule["name"] for page in pages(client, **query) for schedule in page]


@pytest.fixture
def some(client: Client, world: World) -> None:
    for fields in (
        {"name": "bill-daily", "cron": "0 12 * * *", "labels": {"team": "billing", "env": "prod"}},
        {"name": "bill-hourly", "rate": "1 hour", "labels": {"team": "billing", "env": "test"}},
        {"name": "mail", "cron": "* * * * *", "labels": {"team": "mail"}},
        {"name": "old", "cron": "0 0 * * *"},
    ):
        made = client.create(**fields)
        world.clock.move(seconds=1)
    client.post(f"/v1/schedules/{made['id']}/pause")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["bill-daily", "bill-hourly", "mail", "old"]),
        ({"status": "paused"}, ["old"]),
        ({"status": "active"}, ["bill-daily", "bill-hourly", "mail"]),
        ({"status": "paused,active"}, ["bill-daily", "bill-hourly", "mail", "old"]),
        ({"status": "disabled"}, []),
        ({"label": "team:billing"}, ["bill-daily", "bill-hourly"]),
        ({"label": "team:billing,env:prod"}, ["bill-daily"]),
        ({"label": "env:"}, []),
        ({"name_prefix": "bill-"}, ["bill-daily", "bill-hourly"]),
        ({"name_prefix": "%"}, []),
        ({"next_run_until": "2026-12-01T10:00:00Z"}, ["mail"]),
        ({"next_run_from": "2026-12-01T10:00:00Z"}, ["bill-daily", "bill-hourly"]),
        ({"next_run_from": "2026-12-01T10:00:00Z", "next_run_until": "2026-12-01T12:00:00Z"}, ["bill-hourly"]),
        ({"next_run_until": "2026-12-01T10:00:00Z", "label": "team:billing"}, []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("limit", ["1", "2", "100"])
def test_schedules_are_found_by_all_filters_together(
    client: Client, some: None, query: dict[str, str], expected: list[str], limit: str
) -> None:
    assert names(client, limit=limit, **query) == expected


def various(client: Client, world: World) -> None:
    """Schedules whose next runs the database alone can't tell: in other windows, at their ends, planned ahead, or behind."""
    fields: tuple[dict[str, Any], ...] = (
        {"cron": "* * * * *"},
        {"cron": "* * * * *", "start_at": "2026-12-01T12:00:00Z"},
        {"cron": "0 12 * * *", "end_at": "2026-12-01T11:00:00Z"},
        {"cron": "0 * * * *", "start_at": "2026-12-02T00:30:00Z"},
        {"cron": "2 9 * * *", "max_runs": 1},
        {"cron": "5 9 * * *", "max_runs": 1},
        {"rate": "90 seconds", "end_at": "2026-12-01T09:04:00Z"},
        {"at": "2026-12-01T09:01:30"},
        {"at": "2027-06-01T00:00:00", "timezone": "Europe/Berlin"},
        {"cron": "0 0 * * *", "exclude": {"dates": ["2026-12-02"]}},
    )
    for number, each in enumerate(fields):
        made = client.create(name=f"s{number}", **each)
        other = client.create(name=f"paused{number}", **each)
        for one, pause in ((made, None), (other, {"until": "2026-12-01T09:03:00Z"}), (client.create(**each), {})):
            if pause is not None:
                client.post(f"/v1/schedules/{one['id']}/pause", pause)
        world.clock.move(milliseconds=100)


@pytest.mark.parametrize("ticks", [True, False])
def test_the_next_run_of_every_schedule_is_found_at_any_time_and_pages_are_full(
    client: Client, world: World, ticks: bool
) -> None:
    various(client, world)
    moments = ["2026-12-01T09:00:00", "2026-12-01T09:01:30", "2026-12-01T09:02:01", "2026-12-01T09:05:00"]
    moments += ["2026-12-01T12:00:00", "2026-12-02T00:00:00", "2026-12-02T01:00:01", "2027-01-01T00:00:00"]
    for now in ("09:00:30", "09:01:59", "09:02:00", "09:03:30", "09:10:00"):
        world.clock.set(now)
        if ticks:
            world.tick()
        everything = [each for page in pages(client) for each in page]
        for since, until in itertools.combinations([None, *moments, None], 2):
            query = {name: f"{at}Z" for name, at in (("next_run_from", since), ("next_run_until", until)) if at}
            found = pages(client, limit="3", **query)
            expected = [
                each["id"]
                for each in everything
                if not query or (each["next_run_at"] and (since or "") <= each["next_run_at"][:-1] < (until or "9"))
            ]
            assert [each["id"] for page in found for each in page] == expected, (now, query)
            assert {len(page) for page in found[:-1]} <= {3}, (now, query)


def test_a_page_has_room_for_payloads_of_any_size(client: Client) -> None:
    for number in range(6):
        client.create(name=f"{number}", payload='"' * 100_000)
    found = pages(client)
    assert [len(page) for page in found] == [5, 1]
    assert sorted(each["name"] for page in found for each in page) == [f"{number}" for number in range(6)]


@pytest.mark.parametrize(
    ("query", "parameter"),
    [
        ({"status": "deleted"}, "status"),
        ({"status": ""}, "status"),
        ({"label": "team"}, "label"),
        ({"label": "a:b,"}, "label"),
        ({"label": "a:b,a:c"}, "label"),
        ({"next_run_from": "tomorrow"}, "next_run_from"),
        ({"trigger": "manual"}, "trigger"),
    ],
)
def test_a_filter_that_can_not_be_taken_is_named(client: Client, query: dict[str, str], parameter: str) -> None:
    answer = client.get("/v1/schedules", **query)
    assert (answer.status, answer.pointers) == (400, [parameter])


def test_labels_and_a_description_are_kept_and_cleared(client: Client) -> None:
    made = client.create(labels={"b": "2", "a": ""}, description="why\nit is")
    assert (made["labels"], made["description"]) == ({"a": "", "b": "2"}, "why\nit is")
    cleared = client.patch(f"/v1/schedules/{made['id']}", {"labels": None, "description": None}).document
    assert (cleared["labels"], cleared["description"], cleared["version"]) == ({}, None, 2)


@pytest.mark.parametrize(
    ("labels", "pointers"),
    [
        ({"": "x"}, ["/labels/"]),
        ({"a b": "x", "ok": "ok"}, ["/labels/a b"]),
        ({"a": 1, "b": "x y"}, ["/labels/a", "/labels/b"]),
        ({"x" * 64: ""}, ["/labels/" + "x" * 64]),
        ({f"l{number}": "" for number in range(33)}, ["/labels"]),
        (["a"], ["/labels"]),
    ],
)
def test_labels_that_can_not_be_taken_are_named(client: Client, labels: Any, pointers: list[str]) -> None:
    answer = client.post("/v1/schedules", {"rate": "1 hour", "url": "https://hook.example/", "labels": labels})
    assert (answer.status, answer.pointers) == (400, pointers)


@pytest.fixture
def runs(client: Client, world: World) -> dict[str, str]:
    """Two schedules' ids; one has two planned runs and a manual one, the other a failed and a planned one."""
    first, second = client.create(name="first"), client.create(name="second")
    client.post(f"/v1/schedules/{first['id']}/trigger")
    world.sql(
        """update job_run set state = 'failed', reason = 'exhausted', ended_at = :now
        where schedule_id = :id and scheduled_for = '2026-12-01T09:01:00Z'""",
        id=second["id"],
        now=datetime(2026, 12, 1, 9, 1, tzinfo=UTC),
    )
    return {"first": first["id"], "second": second["id"]}


@pytest.mark.parametrize("text", ["", "7", "{00000000-0000-4000-8000-000000000000}", "\x00"])
def test_a_schedule_to_list_runs_of_that_is_no_id_is_named(client: Client, text: str) -> None:
    answer = client.get("/v1/runs", schedule_id=text)
    assert (answer.status, answer.pointers) == (400, ["schedule_id"])


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["09:02:00", "09:02:00", "09:01:00", "09:01:00", "09:00:01"]),
        ({"status": "failed"}, ["09:01:00"]),
        ({"status": "failed,queued"}, ["09:02:00", "09:02:00", "09:01:00", "09:01:00", "09:00:01"]),
        ({"trigger": "manual"}, ["09:00:01"]),
        ({"trigger": "backfill"}, []),
        ({"scheduled_from": "2026-12-01T09:02:00Z"}, ["09:02:00", "09:02:00"]),
        ({"scheduled_until": "2026-12-01T09:01:00Z"}, ["09:00:01"]),
        ({"status": "cancelled"}, []),
    ],
)
@pytest.mark.parametrize("limit", ["1", "2", "100"])
def test_runs_are_found_over_all_schedules_newest_first(
    client: Client, runs: dict[str, str], query: dict[str, str], expected: list[str], limit: str
) -> None:
    found: list[str] = []
    query = query | {"limit": limit}
    while True:
        page = client.get("/v1/runs", **query).document
        found += [run["scheduled_for"][11:19] for run in page["runs"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert found == expected


def test_runs_of_one_schedule_are_the_same_on_both_ways(client: Client, runs: dict[str, str]) -> None:
    own = client.get(f"/v1/schedules/{runs['first']}/runs").document
    assert client.get("/v1/runs", schedule_id=runs["first"]).document == own
    assert len(own["runs"]) == 3


def test_another_tenants_runs_and_schedules_are_not_found(client: Client, runs: dict[str, str]) -> None:
    other = client.stranger()
    assert other.get("/v1/runs").document["runs"] == []
    assert other.get("/v1/runs", schedule_id=runs["first"]).document["runs"] == []
    assert other.get("/v1/schedules", name_prefix="f").document["schedules"] == []
    assert other.post("/v1/schedules/pause", {"labels": {"a": "b"}}).document["matched"] == 0
