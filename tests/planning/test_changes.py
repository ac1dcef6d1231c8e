"""Changes to schedules beside a planner that may be late, early or under way: nothing missing, nothing invented."""

from dataclasses import replace
from datetime import timedelta

import pytest
from scheduler.errors import Conflict, InvalidInput, NotFound
from scheduler.history import History
from scheduler.timing import Late, Misfire, Timing

from tests.world import T0, World, utc


def test_an_edit_that_keeps_an_instant_keeps_its_run(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.edit(schedule, cron="*/2 * * * *")
    assert world.planned(schedule) == ["09:02:00"]


def test_a_schedule_whose_times_can_not_be_computed_is_listed_and_can_be_deleted(world: World) -> None:
    bad, good = world.create(cron="*/2 * * * *"), world.create(cron="* * * * *")
    world.sql("update calendar set expression = 'nonsense' where id = :id", id=bad.calendar_id)
    world.clock.move(minutes=5)
    world.tick()
    outlooks = History(database=world.database, clock=world.clock).outlooks([bad, good])
    assert (outlooks[bad.id].next_run_at, outlooks[good.id].next_run_at) == (None, utc("09:06:00"))
    world.delete(bad)
    assert world.sql("select distinct state, reason from job_run where schedule_id = :id", id=bad.id) == [
        ["cancelled", "deleted"]
    ]
    with pytest.raises(NotFound):
        world.scheduling.get(world.tenant_id, bad.id)


def test_an_edit_of_timing_moves_future_runs_and_leaves_those_that_are_due(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.clock.set("09:01:30")
    world.edit(schedule, rate="20 seconds", start_at=utc("09:01:40"))
    assert world.planned(schedule)[:3] == ["09:01:00", "09:01:40", "09:02:00"]


def test_an_edit_of_anything_else_does_not_touch_the_cursor_or_the_runs(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    before = world.sql("select id, sends from job_run order by 1"), world.sql("select planned_through from calendar")

    def rename(old: object) -> object:
        return type(schedule.definition)(
            name="new", timing=schedule.definition.timing, url="https://other.example/", headers=(), payload=b"1"
        )

    world.clock.move(seconds=20)
    edited = world.scheduling.edit(world.tenant_id, schedule.id, rename, changed_by="test")  # type: ignore[arg-type]
    assert edited.definition.url == "https://other.example/"
    assert edited.active_from == schedule.active_from
    assert (
        world.sql("select id, sends from job_run order by 1"),
        world.sql("select planned_through from calendar"),
    ) == before


def test_a_pause_and_resume_ten_seconds_apart_around_a_planned_run_skip_it(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.clock.set("09:00:55")
    world.pause(schedule)
    assert world.planned(schedule) == []
    world.clock.set("09:01:05")
    world.resume(schedule)
    assert world.planned(schedule) == ["09:02:00"]
    assert world.sql("select reason, first_scheduled_for, last_scheduled_for, occurrences from skipped_range") == [
        ["paused", utc("09:01:00"), utc("09:01:00"), 1]
    ]


def test_a_pause_and_resume_before_a_planned_run_keep_it(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.clock.set("09:00:40")
    world.pause(schedule)
    world.clock.set("09:00:50")
    world.resume(schedule)
    assert world.planned(schedule) == ["09:01:00", "09:02:00"]


@pytest.mark.parametrize("change", ["edit", "pause", "resume", "create"])
def test_a_change_while_the_tick_is_ten_minutes_late_owes_what_came_before_it(world: World, change: str) -> None:
    schedule = world.create(cron="* * * * *")
    if change == "resume":
        world.pause(schedule)
    world.clock.set("09:12:30")
    match change:
        case "edit":
            world.edit(schedule, cron="30 * * * *")
            expected = [f"09:{m:02}:00" for m in range(1, 13)]
        case "pause":
            world.pause(schedule)
            expected = [f"09:{m:02}:00" for m in range(1, 13)]
        case "resume":
            world.resume(schedule)
            expected = ["09:13:00", "09:14:00"]
        case _:
            schedule = world.create(cron="* * * * *")
            expected = ["09:13:00", "09:14:00"]
    world.tick()
    assert world.planned(schedule) == expected


def test_an_edit_plans_nothing_for_the_others_on_its_calendar(world: World) -> None:
    timing = Timing(cron="* * * * *", misfire=Misfire(policy=Late.SKIP))
    edited, other = world.create(timing), world.create(timing)
    world.clock.set("09:12:30")
    world.retime(edited, replace(timing, cron="30 * * * *"))
    world.tick()
    for schedule in (edited, other):
        assert world.skipped(schedule) == [("missed", "09:03:00", "09:11:00", 9)]


def test_an_edit_to_a_calendar_that_lags_gets_its_future_from_the_tick(world: World) -> None:
    other = world.create(cron="*/5 * * * *")
    schedule = world.create(cron="* * * * *")
    world.clock.set("09:12:30")
    world.edit(schedule, cron="*/5 * * * *")
    world.tick()
    assert world.planned(other) == ["09:05:00", "09:10:00"]
    assert world.planned(schedule) == [f"09:{m:02}:00" for m in range(1, 13)]
    world.clock.set("09:14:00")
    world.tick()
    assert world.planned(schedule)[-1] == "09:15:00"


def test_a_create_while_a_cursor_stands_an_hour_ahead_misses_nothing_before_it(world: World) -> None:
    world.create(cron="*/10 * * * *")
    world.clock.move(hours=1)
    world.tick()
    world.clock.move(hours=-1)
    schedule = world.create(cron="*/10 * * * *")
    assert world.planned(schedule) == ["09:10:00", "09:20:00", "09:30:00", "09:40:00", "09:50:00", "10:00:00"]


def test_an_edit_while_a_cursor_stands_an_hour_ahead_takes_back_what_was_planned(world: World) -> None:
    schedule = world.create(cron="*/10 * * * *")
    world.clock.move(hours=1)
    world.tick()
    world.clock.move(hours=-1)
    world.edit(schedule, cron="0 12 * * *")
    assert world.planned(schedule) == []


@pytest.mark.parametrize(
    "as_it_is",
    ["state = 'delivering', attempt = 1, lease_until = '2026-12-01T09:02:00Z'", "attempt = 1", "trigger = 'manual'"],
)
def test_a_later_run_that_was_claimed_or_asked_for_by_hand_goes_on(world: World, as_it_is: str) -> None:
    schedule = world.create(cron="* * * * *")
    world.sql(f"update job_run set {as_it_is} where scheduled_for = :at", at=utc("09:01:00"))
    world.edit(schedule, cron="0 12 * * *")
    assert world.planned(schedule) == ["09:01:00"]


def test_a_delete_ends_it_and_leaves_nothing_later(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.clock.set("09:01:30")
    world.delete(schedule)
    world.clock.set("09:30:00")
    world.tick()
    assert world.sql("select scheduled_for, state, reason from job_run") == [[utc("09:01:00"), "cancelled", "deleted"]]
    with pytest.raises(NotFound):
        world.scheduling.get(world.tenant_id, schedule.id)


def test_each_change_is_a_version_and_one_that_changes_nothing_is_none(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.pause(schedule)
    world.pause(schedule)
    world.resume(schedule)
    world.edit(schedule, cron="* * * * *")
    world.edit(schedule, cron="0 * * * *")
    world.delete(schedule)
    assert [row[0] for row in world.sql("select change from schedule_version order by version")] == [
        "created",
        "paused",
        "resumed",
        "edited",
        "deleted",
    ]


def test_an_edited_one_off_in_the_past_is_refused_and_nothing_changes(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    with pytest.raises(InvalidInput, match="past by more than 60 seconds"):
        world.edit(schedule, at="2026-12-01T08:00:00")
    assert world.planned(schedule) == ["09:01:00", "09:02:00"]


def test_a_rate_keeps_its_rhythm_when_only_its_end_changes(world: World) -> None:
    schedule = world.create(rate="7 minutes")
    world.clock.move(minutes=3)
    edited = world.retime(schedule, Timing(rate="7 minutes", end_at=T0 + timedelta(minutes=20)))
    assert edited.calendar_id == schedule.calendar_id
    world.clock.move(minutes=30)
    world.tick()
    assert world.planned(schedule) == ["09:07:00", "09:14:00"]


def test_a_name_is_used_once_in_a_tenant_and_is_free_after_a_delete(world: World) -> None:
    first = world.create(name="nightly")
    with pytest.raises(Conflict, match="'nightly'"):
        world.create(name="nightly")
    world.delete(first)
    world.create(name="nightly")


def test_another_tenants_schedule_is_not_found(world: World) -> None:
    schedule = world.create()
    stranger = World(login=world.login, database=world.database)
    for change in (stranger.pause, stranger.resume, stranger.delete):
        with pytest.raises(NotFound):
            change(schedule)
