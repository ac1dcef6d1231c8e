"""Pauses: one with an end ends by itself, what lies inside is recorded and not missed, and held runs do not wait for ever."""

from datetime import timedelta

import pytest
from scheduler.changes import LONGEST_PAUSE
from scheduler.errors import InvalidInput, NotFound
from scheduler.holding import expire_held
from scheduler.schedules import DisablingOrder, DisablingReason, Pause, Status
from scheduler.skipped_ranges import list_skipped
from scheduler.timing import Timing

from tests.depot import Depot
from tests.world import World, utc

EVER = (utc("9998-01-01T00:00:00+00:00"), 2**62)


def test_a_pause_with_an_end_ends_by_itself_and_needs_no_waker(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    paused = world.pause(schedule, until=utc("09:05:00"), reason="moving house")
    assert paused.pause == Pause(until=utc("09:05:00"), reason="moving house")
    assert paused.status_at(utc("09:04:59")) is Status.PAUSED
    assert paused.status_at(utc("09:05:00")) is Status.ACTIVE
    world.clock.set("09:04:00")
    world.tick()
    assert world.planned(schedule) == ["09:05:00", "09:06:00"]
    assert world.skipped(schedule) == [("paused", "09:01:00", "09:04:00", 4)]


def test_a_resume_before_the_end_takes_back_the_rest_of_the_pause(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.pause(schedule, until=utc("09:30:00"))
    world.clock.set("09:02:30")
    resumed = world.resume(schedule)
    assert (resumed.pause, resumed.status) == (None, Status.ACTIVE)
    world.clock.set("09:03:30")
    world.tick()
    assert world.planned(schedule) == ["09:03:00", "09:04:00", "09:05:00"]
    assert world.skipped(schedule) == [("paused", "09:01:00", "09:02:00", 2)]


def test_a_resume_before_anything_was_skipped_takes_back_the_whole_pause(world: World) -> None:
    schedule = world.create(cron="*/5 * * * *")
    world.pause(schedule, until=utc("09:30:00"))
    assert world.skipped(schedule) == [("paused", "09:05:00", "09:25:00", 5)]
    world.clock.set("09:02:30")
    world.resume(schedule)
    assert world.skipped(schedule) == []


def test_a_pause_with_an_end_skips_nothing_before_the_schedule_begins(world: World) -> None:
    schedule = world.create(cron="* * * * *", start_at=utc("09:30:00"))
    world.pause(schedule, until=utc("09:40:00"))
    assert world.skipped(schedule) == [("paused", "09:30:00", "09:39:00", 10)]


def test_an_edit_inside_a_pause_keeps_the_pause_and_accounts_for_both_timings(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.pause(schedule, until=utc("09:10:00"))
    world.clock.set("09:02:30")
    world.edit(schedule, cron="*/5 * * * *")
    world.clock.set("09:16:00")
    world.tick()
    assert world.planned(schedule) == ["09:10:00", "09:15:00"]
    assert world.skipped(schedule) == [("paused", "09:01:00", "09:02:00", 2), ("paused", "09:05:00", "09:05:00", 1)]


def test_an_edit_of_something_else_after_the_pause_ended_touches_no_run(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.pause(schedule, until=utc("09:02:00"))
    world.clock.set("09:03:00")
    world.tick()
    before = world.sql("select id, created_at from job_run order by 1")
    world.clock.set("09:03:20")
    world.retime(schedule, Timing(cron="* * * * *"))
    assert world.sql("select id, created_at from job_run order by 1") == before


@pytest.mark.parametrize("until", ["08:59:00", "09:00:00", "too far"])
def test_an_end_that_is_past_or_too_far_away_is_refused_and_nothing_changes(world: World, until: str) -> None:
    schedule = world.create(cron="* * * * *")
    moment = world.clock.now + LONGEST_PAUSE + timedelta(seconds=1) if until == "too far" else utc(until)
    with pytest.raises(InvalidInput, match="later than now"):
        world.pause(schedule, until=moment)
    assert world.planned(schedule) == ["09:01:00", "09:02:00"]


def test_runs_due_at_the_pause_are_held_until_its_end_and_later_ones_are_not(depot: Depot) -> None:
    world = depot.world
    schedule = depot.schedule("https://127.0.0.1:9/")
    world.clock.set("09:01:00")
    world.pause(schedule, until=utc("09:04:00"))
    [[held]] = world.sql("select id from job_run")
    world.clock.set("09:03:00")
    world.tick()
    assert world.planned(schedule) == ["09:01:00", "09:04:00", "09:05:00"]
    assert [str(verdict) for verdict in depot.claim(held).verdicts.values()] == ["parked"]
    assert depot.dispatch().taken == 2
    world.clock.set("09:04:00")
    assert depot.dispatch().taken == 1
    assert [str(verdict) for verdict in depot.claim(held).verdicts.values()] == ["claimed"]


def test_a_held_run_expires_when_its_retry_policy_would_have_ended_it_and_that_is_recorded(depot: Depot) -> None:
    world = depot.world
    schedule = depot.schedule("https://127.0.0.1:9/")
    world.clock.set("09:01:00")
    world.pause(schedule)
    [[held]] = world.sql("select id from job_run")
    world.clock.move(hours=23, minutes=59)
    assert expire_held(world.database, world.clock, more_time=lambda: True) == 0
    world.clock.move(minutes=2)
    assert expire_held(world.database, world.clock, more_time=lambda: True) == 1
    assert (depot.run(held)["state"], depot.run(held)["reason"]) == ("failed", "expired")
    [[detail]] = world.sql("select detail from outbox where type = 'schedule.run.failed'")
    assert detail["reason"] == "expired"


def test_runs_of_a_schedule_that_fires_do_not_expire_here(depot: Depot) -> None:
    depot.one_run("https://127.0.0.1:9/")
    depot.world.clock.move(days=2)
    assert expire_held(depot.world.database, depot.world.clock, more_time=lambda: True) == 0


def test_a_pause_outside_of_the_window_or_of_a_complete_schedule_skips_nothing(world: World) -> None:
    later = world.create(cron="* * * * *", start_at=utc("09:30:00"), end_at=utc("09:32:00"))
    complete = world.create(cron="* * * * *", max_runs=1)
    world.clock.set("09:01:30")
    for schedule in (later, complete):
        world.pause(schedule)
    world.clock.set("09:40:00")
    for schedule in (later, complete):
        world.resume(schedule)
    assert world.skipped(later) == [("paused", "09:30:00", "09:31:00", 2)]
    assert world.skipped(complete) == []


def test_what_a_disabled_schedule_does_not_fire_was_not_paused(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.clock.set("09:02:30")
    order = DisablingOrder(
        schedule_id=schedule.id,
        tenant_id=world.tenant_id,
        reason=DisablingReason.GONE,
        decided_at=world.clock.now,
    )
    world.scheduling.disable(order)
    world.clock.set("09:04:30")
    world.pause(schedule)
    world.clock.set("09:07:00")
    world.resume(schedule)
    assert world.planned(schedule) == ["09:01:00", "09:02:00"]
    assert world.skipped(schedule) == [
        ("disabled", "09:03:00", "09:04:00", 2),
        ("paused", "09:05:00", "09:07:00", 3),
    ]


def test_skipped_ranges_are_listed_newest_first_page_by_page_to_their_tenant_alone(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    for minute in (2, 5, 8):
        world.clock.set(f"09:{minute:02}:30")
        world.pause(schedule)
        world.clock.set(f"09:{minute + 1:02}:30")
        world.resume(schedule)
    first = list_skipped(world.database, world.tenant_id, schedule.id, before=EVER, most=2)
    assert [each.first_scheduled_for for each in first] == [utc("09:09:00"), utc("09:06:00")]
    keyset = first[-1].last_scheduled_for, first[-1].id
    [last] = list_skipped(world.database, world.tenant_id, schedule.id, before=keyset, most=2)
    assert (last.first_scheduled_for, last.occurrences, last.reason) == (utc("09:03:00"), 1, "paused")
    with pytest.raises(NotFound):
        list_skipped(world.database, schedule.id, schedule.id, before=EVER, most=2)
