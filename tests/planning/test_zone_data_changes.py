"""Newer time zone data: the planned future moves and is announced, what ran stays, and no wall time fires twice."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from scheduler.calendar.zones import reading
from scheduler.schedules import Schedule
from scheduler.store.connection import Database
from scheduler.timing import Exclude, Late, Misfire, Timing

from tests.planning.zone_releases import paris_as
from tests.world import T0, World, utc

_SCHEMA = Path(__file__).parents[2] / "contracts" / "events" / "schedule.shifted.json"
SHIFTED = Draft202012Validator(json.loads(_SCHEMA.read_text()), format_checker=Draft202012Validator.FORMAT_CHECKER)
PARIS = "Europe/Paris"
# In December the clocks of Paris are an hour ahead of UTC, those of Athens two, those of London none.
AHEAD, BACK = "Europe/Athens", "Europe/London"


def shifts(world: World) -> list[dict[str, Any]]:
    """The details of all schedule.shifted events, each as its schema says."""
    rows = world.sql("select id, tenant_id, detail from outbox where type = 'schedule.shifted' order by created_at, id")
    for event_id, tenant_id, detail in rows:
        SHIFTED.validate({"id": str(event_id), "tenant_id": str(tenant_id), **detail})
    return [row[2] for row in rows]


def times(detail: dict[str, Any]) -> tuple[list[datetime], list[datetime]]:
    return tuple([datetime.fromisoformat(each) for each in detail[name]] for name in ("old_times", "new_times"))  # type: ignore[return-value]


def cursor(world: World, schedule: Schedule) -> list[Any]:
    found: list[list[Any]] = world.sql(
        "select planned_through, next_fire_at, tzdata_version from calendar where id = :id", id=schedule.calendar_id
    )
    return found[0]


@pytest.mark.parametrize(("zone", "moved"), [(AHEAD, "16:00"), (BACK, "18:00")])
def test_an_occurrence_to_come_moves_and_its_tenant_is_told(
    world: World, tmp_path: Path, zone: str, moved: str
) -> None:
    schedule = world.create(at="2026-12-03T18:00:00", timezone=PARIS)
    planned_through = cursor(world, schedule)[0]
    new = utc(f"2026-12-03T{moved}:00+00:00")
    with reading(paris_as(zone, tmp_path)):
        assert world.tick().shifted == 1
        assert cursor(world, schedule)[0] >= planned_through
        assert cursor(world, schedule)[1:] == [new, "9999z"]
        world.clock.set("2026-12-03T23:00:00+00:00")
        world.tick()
    assert world.sql("select scheduled_for, tzdata_version from job_run") == [[new, "9999z"]]
    [detail] = shifts(world)
    assert times(detail) == ([utc("2026-12-03T17:00:00+00:00")], [new])
    assert (detail["schedule_id"], detail["timezone"]) == (str(schedule.id), PARIS)


def test_a_run_that_is_planned_already_moves(world: World, tmp_path: Path) -> None:
    schedule = world.create(cron="2 10 * * *", timezone=PARIS, max_runs=3)
    assert world.planned(schedule) == ["09:02:00"]
    with reading(paris_as(BACK, tmp_path)):
        world.tick()
        assert world.planned(schedule) == []
        assert world.sql("select runs_left from schedule") == [[3]]
        world.clock.set("10:01:00")
        world.tick()
    assert world.planned(schedule) == ["10:02:00"]
    [detail] = shifts(world)
    assert times(detail) == ([utc("09:02:00"), utc("2026-12-02T09:02:00+00:00")], [utc("10:02:00")])


@pytest.mark.parametrize(
    "as_it_is",
    ["state = 'delivering', attempt = 1, lease_until = '2026-12-01T09:03:00Z'", "attempt = 1", "trigger = 'manual'"],
)
def test_a_run_that_was_claimed_or_asked_for_by_hand_stays(world: World, tmp_path: Path, as_it_is: str) -> None:
    schedule = world.create(cron="2 10 * * *", timezone=PARIS)
    world.sql(f"update job_run set {as_it_is}")
    with reading(paris_as(BACK, tmp_path)):
        world.tick()
    assert world.planned(schedule) == ["09:02:00"]


def test_a_wall_time_that_fired_does_not_fire_again_when_the_clocks_turn_out_to_be_behind(
    world: World, tmp_path: Path
) -> None:
    schedule = world.create(cron="0 11 * * *", timezone=PARIS)
    world.clock.set("09:59:30")
    world.tick()
    world.clock.set("10:05:00")
    with reading(paris_as(BACK, tmp_path)):
        for _ in range(30):
            world.tick()
            world.clock.move(hours=1)
    rows = world.sql("select scheduled_for from job_run where schedule_id = :id order by 1", id=schedule.id)
    assert [row[0] for row in rows] == [utc("10:00:00"), utc("2026-12-02T11:00:00+00:00")]


@pytest.mark.parametrize(("policy", "runs"), [(Late.ALL, ["08:02:00"]), (Late.SKIP, [])])
def test_a_wall_time_that_turns_out_to_be_past_is_late_and_the_misfire_policy_decides(
    world: World, tmp_path: Path, policy: Late, runs: list[str]
) -> None:
    world.clock.set("07:00:00")
    schedule = world.create(cron="2 10 * * *", timezone=PARIS, misfire=Misfire(policy=policy))
    world.clock.set("09:00:30")
    with reading(paris_as(AHEAD, tmp_path)):
        world.tick()
    assert world.planned(schedule) == runs
    assert world.skipped(schedule) == ([] if runs else [("missed", "08:02:00", "08:02:00", 1)])


@pytest.mark.parametrize("zone", [AHEAD, BACK])
def test_a_job_that_follows_the_real_time_keeps_its_rhythm(world: World, tmp_path: Path, zone: str) -> None:
    schedule = world.create(cron="*/5 * * * *", timezone=PARIS)
    world.clock.set("09:12:00")
    world.tick()
    with reading(paris_as(zone, tmp_path)):
        world.clock.set("09:21:00")
        world.tick()
    assert world.planned(schedule) == ["09:05:00", "09:10:00", "09:15:00", "09:20:00"]


@pytest.mark.parametrize("zone", [AHEAD, BACK])
def test_a_rate_keeps_its_rhythm_though_a_zone_says_what_its_excluded_dates_are(
    world: World, tmp_path: Path, zone: str
) -> None:
    exclude = Exclude(dates=(date(2026, 12, 3),))
    schedule = world.create(rate="5 minutes", start_at=utc("09:05:00"), timezone=PARIS, exclude=exclude)
    world.clock.set("09:12:00")
    world.tick()
    with reading(paris_as(zone, tmp_path)):
        world.clock.set("09:21:00")
        world.tick()
    assert world.planned(schedule) == ["09:05:00", "09:10:00", "09:15:00", "09:20:00"]
    assert shifts(world) == []


def test_a_wall_time_that_is_leapt_over_is_owed_though_the_next_one_is_when_the_old_one_was(
    world: World, tmp_path: Path
) -> None:
    """By the newer data 10:30 is past, 11:00 was when 10:00 has run, and 11:30 is when 10:30 was to be."""
    world.clock.set("07:00:00")
    schedule = world.create(cron="0,30 10,11 * * *", timezone=PARIS)
    world.clock.set("09:00:30")
    world.tick()
    assert world.planned(schedule) == ["09:00:00"]
    with reading(paris_as(AHEAD, tmp_path)):
        world.tick()
        assert world.planned(schedule) == ["08:30:00", "09:00:00"]
        world.clock.set("11:00:00")
        world.tick()
    assert world.planned(schedule) == ["08:30:00", "09:00:00", "09:30:00"]


def test_a_change_of_a_summer_to_come_is_told_now(world: World, tmp_path: Path) -> None:
    """In December the clocks of Lagos are those of Paris, in July they are not."""
    schedule = world.create(cron="0 12 1 7 *", timezone=PARIS)
    with reading(paris_as("Africa/Lagos", tmp_path)):
        assert world.tick().shifted == 1
        assert cursor(world, schedule)[1] == utc("2027-07-01T11:00:00+00:00")
    [detail] = shifts(world)
    assert times(detail) == ([utc("2027-07-01T10:00:00+00:00")], [utc("2027-07-01T11:00:00+00:00")])


@pytest.mark.parametrize("zone", [AHEAD, BACK])
@pytest.mark.parametrize("minutes", [0, 29, 31, 59, 61, 90, 121])
def test_at_whatever_moment_it_comes_each_wall_time_fires_once(
    world: World, tmp_path: Path, zone: str, minutes: int
) -> None:
    world.clock.set("07:30:00")
    schedule = world.create(cron="0,30 6,8,10,12,14 * * *", timezone=PARIS)
    release = paris_as(zone, tmp_path)
    ahead = timedelta(hours=1 if zone == AHEAD else -1)
    world.clock.set("08:58:00")
    change = T0 + timedelta(minutes=minutes)
    while world.clock.now < change:
        world.tick()
        world.clock.move(minutes=1)
    with reading(release):
        while world.clock.now < utc("16:00:00"):
            world.tick()
            world.clock.move(minutes=1)
    rows = world.sql("select scheduled_for, tzdata_version from job_run where schedule_id = :id", id=schedule.id)
    walls = sorted(at + timedelta(hours=1) + (ahead if version == "9999z" else timedelta()) for at, version in rows)
    assert len(set(walls)) == len(walls)
    assert [f"{wall.astimezone(UTC):%H:%M}" for wall in walls] == ["10:00", "10:30", "12:00", "12:30", "14:00", "14:30"]


def test_a_planner_with_older_data_beside_it_leaves_the_calendar_alone(world: World, tmp_path: Path) -> None:
    schedule = world.create(cron="*/10 * * * *", timezone=PARIS)
    with reading(paris_as(BACK, tmp_path)):
        world.tick()
    stamped = cursor(world, schedule)
    world.clock.set("09:30:00")
    done = world.tick()
    assert (done.runs, done.shifted, done.busy) == (0, 0, 0)
    assert cursor(world, schedule) == stamped
    with reading(paris_as(BACK, tmp_path / "again")):
        assert world.tick().runs == 3


def test_a_schedule_that_has_made_all_its_runs_is_told_nothing(world: World, tmp_path: Path) -> None:
    world.create(cron="2 10 * * *", timezone=PARIS, max_runs=1)
    world.clock.set("09:30:00")
    world.tick()
    with reading(paris_as(AHEAD, tmp_path)):
        assert world.tick().shifted == 1
    assert shifts(world) == []


def test_a_calendar_is_retimed_by_one_planner_at_a_time_and_its_cursor_stays(
    world: World, connect: Callable[[], Database]
) -> None:
    schedule = world.create(cron="* * * * *", timezone=PARIS)
    asked = {"tzdata_version": "9999z", "left_alone": [], "most": 9}
    with connect().transaction() as one, connect().transaction() as other:
        [row] = one.run("retiming.claim_outdated", **asked)
        assert other.run("retiming.claim_outdated", **asked) == []
        earlier = row["planned_through"] - timedelta(seconds=1)
        changed = {"excluded_dates": [], "utc_offset": 0, "tzdata_version": "9999z", "revised_at": T0}
        revised = one.change(
            "retiming.revise", id=schedule.calendar_id, cursor=earlier, next_fire_at=row["next_fire_at"], **changed
        )
        assert revised == 0


def test_data_that_changes_nothing_is_stamped_and_nobody_is_told(world: World, tmp_path: Path) -> None:
    schedule = world.create(cron="* * * * *", timezone=PARIS)
    others = [world.create(cron="* * * * *"), world.create(rate="1 minute")]
    before = world.sql("select id, created_at from job_run order by 1")
    with reading(paris_as("Europe/Berlin", tmp_path)):
        assert world.tick().shifted == 0
    assert world.sql("select id, created_at from job_run order by 1") == before
    assert {cursor(world, each)[2] for each in (schedule, *others)} == {"9999z"}
    assert shifts(world) == []


def test_a_late_tick_with_newer_data_plans_what_is_owed_and_moves_no_cursor_back(world: World, tmp_path: Path) -> None:
    schedule = world.create(cron="30 10,11,12 * * *", timezone=PARIS)
    before = cursor(world, schedule)[0]
    world.clock.set("11:45:00")
    with reading(paris_as(BACK, tmp_path)):
        world.tick()
    assert world.planned(schedule) == ["10:30:00", "11:30:00"]
    assert cursor(world, schedule)[0] > before


def test_a_paused_schedule_is_told_nothing_and_a_pause_with_an_end_is_accounted_for_anew(
    world: World, tmp_path: Path
) -> None:
    held = world.create(cron="30 11 * * *", timezone=PARIS)
    world.pause(held, until=utc("10:45:00"))
    assert world.skipped(held) == [("paused", "10:30:00", "10:30:00", 1)]
    with reading(paris_as(BACK, tmp_path)):
        world.tick()
        assert world.skipped(held) == []
        world.clock.set("11:29:00")
        world.tick()
    assert world.planned(held) == ["11:30:00"]


def test_an_edit_after_the_change_goes_by_the_new_data(world: World, tmp_path: Path) -> None:
    schedule = world.create(cron="0 12 * * *", timezone=PARIS)
    with reading(paris_as(BACK, tmp_path)):
        world.tick()
        world.retime(schedule, Timing(cron="0 12 * * *", timezone=PARIS, jitter_seconds=1))
        world.clock.set("11:59:00")
        world.tick()
    assert world.planned(schedule) == ["12:00:00"]
