"""Time over HTTP: limits, jitter, misfires, pauses with an end, excluded dates, previews and what was skipped."""

import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.api.client import Client
from tests.world import World

PROJECT = Path(__file__).parents[2]
URL = "https://hook.example/path"
LISTS = "/v1/exclusion-lists"
PREVIEW = "/v1/schedules/preview"


def test_what_is_said_about_time_is_stored_and_can_be_edited(client: Client) -> None:
    said = {
        "max_runs": 5,
        "jitter_seconds": 30,
        "misfire": {"policy": "latest", "grace_seconds": 0, "cap": 1000},
        "exclude": {"dates": ["2026-12-25"], "lists": ["fairs", "holidays"], "on_excluded": "next_day"},
    }
    for name in said["exclude"]["lists"]:  # type: ignore[index]
        client.put(f"{LISTS}/{name}", {"dates": ["2026-12-26"]})
    made = client.create(**said)
    assert {name: made[name] for name in said} == said
    assert made["runs_left"] == 3
    changed = client.patch(f"/v1/schedules/{made['id']}", {"misfire": {"policy": "skip"}, "exclude": None}).document
    assert changed["misfire"] == {"policy": "skip", "grace_seconds": 60, "cap": 100}
    assert changed["exclude"] == {"dates": [], "lists": [], "on_excluded": "skip"}
    assert changed["max_runs"] == 5


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"max_runs": 0}, "/max_runs"),
        ({"max_runs": True}, "/max_runs"),
        ({"jitter_seconds": 3_601}, "/jitter_seconds"),
        ({"jitter_seconds": 1.5}, "/jitter_seconds"),
        ({"misfire": "skip"}, "/misfire"),
        ({"misfire": {"policy": "none"}}, "/misfire/policy"),
        ({"misfire": {"cap": 1_001}}, "/misfire/cap"),
        ({"misfire": {"grace_seconds": -1}}, "/misfire/grace_seconds"),
        ({"misfire": {"grace": 1}}, "/misfire/grace"),
        ({"exclude": {"dates": ["2026-02-30"]}}, "/exclude/dates/0"),
        ({"exclude": {"dates": ["20261224"]}}, "/exclude/dates/0"),
        ({"exclude": {"dates": [None]}}, "/exclude/dates/0"),
        ({"exclude": {"dates": ["2026-12-24"] * 401}}, "/exclude/dates"),
        ({"exclude": {"lists": ["nobody"]}}, "/exclude/lists/0"),
        ({"exclude": {"lists": ["no/body"]}}, "/exclude/lists/0"),
        ({"exclude": {"on_excluded": "only"}}, "/exclude/on_excluded"),
        (
            {"cron": None, "rate": "1 hour", "exclude": {"dates": ["2026-12-24"], "on_excluded": "next_day"}},
            "/exclude/on_excluded",
        ),
        ({"cron": None, "at": "2026-12-24T12:00:00", "exclude": {"dates": ["2026-12-24"]}}, "/at"),
    ],
)
def test_what_can_not_be_taken_is_named_and_nothing_is_stored(
    client: Client, world: World, fields: dict[str, Any], pointer: str
) -> None:
    document = {"cron": "* * * * *", "url": URL} | fields
    for answer in (client.post("/v1/schedules", document), client.post(PREVIEW, document)):
        assert (answer.status, answer.pointers) == (400, [pointer])
    assert world.sql("select count(*) from schedule where tenant_id = :id", id=world.tenant_id) == [[0]]


def test_a_pause_with_an_end_is_shown_until_it_is_over(client: Client, world: World) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    pause = {"until": "2026-12-01T10:00:00Z", "reason": "moving house"}
    paused = client.post(f"{path}/pause", pause).document
    assert (paused["status"], paused["pause"]) == ("paused", pause)
    assert paused["next_run_at"] == "2026-12-01T10:00:00Z"
    world.clock.set("10:00:30")
    world.tick()
    resumed = client.get(path).document
    assert (resumed["status"], resumed["pause"], resumed["version"]) == ("active", None, 2)
    [skipped] = client.get(f"{path}/skipped").document["skipped"]
    assert (skipped["reason"], skipped["occurrences"]) == ("paused", 59)
    assert (skipped["first_scheduled_for"], skipped["last_scheduled_for"]) == (
        "2026-12-01T09:01:00Z",
        "2026-12-01T09:59:00Z",
    )


@pytest.mark.parametrize(
    ("pause", "pointer"),
    [
        ({"until": "2026-12-01T09:00:00Z"}, "/until"),
        ({"until": "2028-12-01T09:00:00Z"}, "/until"),
        ({"until": "tomorrow"}, "/until"),
        ({"reason": ""}, "/reason"),
        ({"reason": "x" * 501}, "/reason"),
        ({"for": "1 hour"}, "/for"),
    ],
)
def test_a_pause_that_can_not_be_taken_changes_nothing(client: Client, pause: dict[str, Any], pointer: str) -> None:
    made = client.create()
    path = f"/v1/schedules/{made['id']}"
    answer = client.post(f"{path}/pause", pause)
    assert (answer.status, answer.pointers) == (400, [pointer])
    assert client.get(path).document == made


def test_a_limited_schedule_shows_its_last_run_and_then_none(client: Client, world: World) -> None:
    path = f"/v1/schedules/{client.create(max_runs=1)['id']}"
    shown = client.get(path).document
    assert (shown["runs_left"], shown["next_run_at"]) == (0, "2026-12-01T09:01:00Z")
    world.clock.set("09:01:30")
    assert client.get(path).document["next_run_at"] is None


def test_skipped_ranges_are_a_page_at_a_time(client: Client, world: World) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    for _ in range(3):
        client.post(f"{path}/pause")
        world.clock.move(minutes=2)
        client.post(f"{path}/resume")
        world.clock.move(seconds=10)
    first = client.get(f"{path}/skipped", limit="2").document
    rest = client.get(f"{path}/skipped", limit="2", cursor=first["next_cursor"]).document
    moments = [each["first_scheduled_for"] for each in first["skipped"] + rest["skipped"]]
    assert len(moments) == 3
    assert moments == sorted(moments, reverse=True)
    assert rest["next_cursor"] is None
    forged = client.get(f"{path}/skipped", cursor=client.get("/v1/schedules", limit="1").document["next_cursor"] or "x")
    assert forged.status == 400


def test_a_preview_shows_what_the_clocks_do(client: Client) -> None:
    spring = client.post(
        PREVIEW,
        {"cron": "30 2 * * *", "timezone": "America/New_York", "start_at": "2027-03-13T12:00:00Z", "count": 2},
    ).document
    assert spring["description"] == "At 02:30 every day, America/New_York time."
    assert spring["occurrences"][0] == {
        "scheduled_for": "2027-03-14T07:00:00Z",
        "local": "2027-03-14T03:00:00-04:00",
        "due_at": "2027-03-14T07:00:00Z",
        "dst_shifted": True,
        "dst_repeated": False,
        "excluded": False,
        "jittered": False,
    }
    both = {"cron": "30 1 * * *", "timezone": "America/New_York", "start_at": "2027-11-07T00:00:00Z", "count": 2}
    autumn = client.post(PREVIEW, both | {"dst": {"overlap": "both"}}).document["occurrences"]
    assert [(each["local"], each["dst_repeated"]) for each in autumn] == [
        ("2027-11-07T01:30:00-04:00", True),
        ("2027-11-07T01:30:00-05:00", True),
    ]


def test_a_preview_shows_excluded_dates_and_ends_with_the_schedule(client: Client, world: World) -> None:
    client.put(f"{LISTS}/holidays", {"dates": ["2026-12-02"]})
    asked = {"cron": "0 12 * * *", "exclude": {"lists": ["holidays"]}, "max_runs": 2}
    shown = client.post(PREVIEW, asked).document
    assert [(each["scheduled_for"][8:10], each["excluded"]) for each in shown["occurrences"]] == [
        ("01", False),
        ("02", True),
        ("03", False),
    ]
    assert shown["occurrences"][1]["due_at"] is None
    assert shown["description"] == "At 12:00 every day, UTC, except on one excluded date."
    assert world.sql("select count(*) from calendar where excluded_dates <> '{}'") == [[0]]


def test_the_preview_of_a_stored_schedule_is_what_its_runs_become(client: Client, world: World) -> None:
    made = client.create(jitter_seconds=40, end_at="2026-12-01T09:04:00Z", max_runs=3)
    path = f"/v1/schedules/{made['id']}"
    foreseen = client.get(f"{path}/preview", count="100").document["occurrences"]
    assert len(foreseen) == 3
    world.clock.set("09:03:30")
    world.tick()
    runs = client.get(f"{path}/runs").document["runs"]
    assert [(each["scheduled_for"], each["due_at"]) for each in foreseen] == [
        (each["scheduled_for"], each["due_at"]) for each in reversed(runs)
    ]
    assert all(each["jittered"] for each in foreseen)
    new = client.post(PREVIEW, {"cron": "* * * * *", "jitter_seconds": 40}).document["occurrences"]
    assert {(each["due_at"], each["jittered"]) for each in new} == {(None, True)}


def test_a_schedule_that_does_not_fire_foresees_nothing(client: Client) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    client.post(f"{path}/pause")
    assert client.get(f"{path}/preview").document["occurrences"] == []


@pytest.mark.parametrize("count", ["0", "101", "x", "-1", "1e1"])
def test_a_count_that_can_not_be_taken_is_refused(client: Client, count: str) -> None:
    path = f"/v1/schedules/{client.create()['id']}"
    assert client.get(f"{path}/preview", count=count).pointers == ["count"]
    assert client.get(f"{path}/preview", limit="1").pointers == ["limit"]


@pytest.mark.parametrize(
    "asked",
    [
        {"cron": "*/7 2 * * *", "timezone": "Europe/Berlin"},
        {"rate": "36 hours"},
        {"cron": "0 9 * * mon#1", "timezone": "Asia/Tokyo"},
        {"cron": "0 */6 * * *", "exclude": "2027-03-21"},
    ],
)
def test_the_command_gives_the_same_instants(client: Client, world: World, asked: dict[str, str]) -> None:
    start = "2027-03-20T00:00:00Z"
    document = asked | ({"exclude": {"dates": [asked["exclude"]]}} if "exclude" in asked else {})
    foreseen = client.post(PREVIEW, document | {"start_at": start, "count": 30}).document["occurrences"]
    shown = [each for each in foreseen if not each["excluded"]]
    words = [word for name, value in asked.items() for word in (f"--{name}", value)]
    ran = subprocess.run(
        [sys.executable, "-m", "scheduler.preview", *words, "--start", start, "--count", str(len(shown))],
        cwd=PROJECT,
        env={"PYTHONPATH": str(PROJECT / "shared")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == [each["scheduled_for"] for each in shown]


def test_an_exclusion_list_is_made_changed_listed_and_deleted(client: Client, world: World) -> None:
    made = client.put(f"{LISTS}/holidays", {"dates": ["2026-12-26", "2026-12-25", "2026-12-26"]}).document
    assert made["dates"] == ["2026-12-25", "2026-12-26"]
    world.clock.move(seconds=1)
    changed = client.put(f"{LISTS}/holidays", {"dates": ["2026-12-01"]}).document
    assert changed["created_at"] == made["created_at"] < changed["updated_at"]
    client.put(f"{LISTS}/fairs", {"dates": []})
    first = client.get(LISTS, limit="1").document
    rest = client.get(LISTS, cursor=first["next_cursor"]).document
    assert [each["name"] for each in first["exclusion_lists"] + rest["exclusion_lists"]] == ["holidays", "fairs"]
    made = client.create(exclude={"lists": ["holidays"]})
    assert made["next_run_at"] == "2026-12-02T00:00:00Z"
    assert client.delete(f"{LISTS}/holidays").status == 409
    client.delete(f"/v1/schedules/{made['id']}")
    assert client.delete(f"{LISTS}/holidays").status == 204
    assert client.get(f"{LISTS}/holidays").status == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/dates"),
        ({"dates": "2026-12-01"}, "/dates"),
        ({"dates": ["2026-12-01", "x"]}, "/dates/1"),
        ({"dates": [str(date(2026, 1, 1) + timedelta(days=n)) for n in range(1_001)]}, "/dates"),
        ({"dates": [], "name": "x"}, "/name"),
    ],
)
def test_dates_that_can_not_be_taken_are_refused(client: Client, body: dict[str, Any], pointer: str) -> None:
    name = str(uuid4())
    assert client.put(f"{LISTS}/{name}", body).pointers == [pointer]
    assert client.get(f"{LISTS}/{name}").status == 404


def test_a_list_has_a_name_that_no_path_has_to_escape(client: Client) -> None:
    assert client.put(f"{LISTS}/{'x' * 101}", {"dates": []}).status == 404
    assert client.put(f"{LISTS}/a%20b", {"dates": []}).status == 404
