"""Planning: each occurrence of each active schedule becomes one run, and cursors only move forward."""

from datetime import timedelta

import pytest
from scheduler import planning
from scheduler.runs import scheduled_for_of
from scheduler.timing import Timing

from tests.world import T0, World, so_often, utc


def test_a_new_schedule_is_planned_at_once_up_to_the_look_ahead(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    assert world.planned(schedule) == ["09:01:00", "09:02:00"]


def test_a_tick_plans_what_comes_due_and_a_second_one_adds_nothing(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.clock.move(minutes=2)
    assert world.tick().runs == 2
    assert world.tick().runs == 0
    assert world.planned(schedule) == ["09:01:00", "09:02:00", "09:03:00", "09:04:00"]


def test_schedules_with_one_calendar_share_its_row_whatever_the_spelling(world: World) -> None:
    world.create(cron="0 9 * * *")
    world.create(cron=" 00  09 * * * ")
    world.create(rate="10 minutes", start_at=utc("10:00:00"))
    world.create(rate="600 seconds", start_at=utc("10:10:00"))
    assert world.sql("select count(*) from calendar") == [[2]]


def test_a_schedule_that_joins_a_calendar_whose_cursor_is_ahead_misses_nothing(world: World) -> None:
    world.create(cron="* * * * *")
    world.clock.move(hours=1)
    world.tick()
    world.clock.move(hours=-1)
    late = world.create(cron="* * * * *")
    assert len(world.planned(late)) == 62
    assert world.planned(late)[0] == "09:01:00"


def test_a_run_id_alone_tells_when_the_run_is_scheduled_for(world: World) -> None:
    world.create(cron="* * * * *")
    for run_id, scheduled_for in world.sql("select id, scheduled_for from job_run"):
        assert scheduled_for_of(run_id) == scheduled_for


def test_a_rate_first_fires_at_its_start_or_else_one_period_after_its_creation(world: World) -> None:
    unanchored = world.create(rate="30 seconds")
    anchored = world.create(rate="30 seconds", start_at=utc("09:01:07"))
    assert world.planned(unanchored)[:2] == ["09:00:30", "09:01:00"]
    assert world.planned(anchored)[:2] == ["09:01:07", "09:01:37"]


def test_a_one_off_in_the_future_is_one_run(world: World) -> None:
    schedule = world.create(at="2026-12-01T10:30:00", timezone="Europe/Berlin")
    world.clock.set("09:29:00")
    world.tick()
    world.clock.set("11:00:00")
    world.tick()
    assert world.planned(schedule) == ["09:30:00"]


def test_a_one_off_that_is_past_by_less_than_the_grace_runs_now(world: World) -> None:
    assert world.planned(world.create(at="2026-12-01T08:59:30")) == ["08:59:30"]


def test_the_window_is_half_open(world: World) -> None:
    schedule = world.create(cron="* * * * *", start_at=utc("09:02:00"), end_at=utc("09:04:00"))
    world.clock.move(minutes=10)
    world.tick()
    assert world.planned(schedule) == ["09:02:00", "09:03:00"]


def test_a_clock_that_goes_back_an_hour_and_forward_an_hour_makes_no_second_run(world: World) -> None:
    schedule = world.create(cron="*/10 * * * *")
    for minutes in (10, -60, 60, 60, -120, 130, 10):
        world.clock.move(minutes=minutes)
        world.tick()
    planned = world.planned(schedule)
    assert planned == sorted(set(planned))
    assert planned[0] == "09:10:00"
    assert len(planned) == (utc(planned[-1]) - utc("09:10:00")) // timedelta(minutes=10) + 1


@pytest.mark.parametrize(
    ("policy", "runs", "skipped"),
    [
        ("all", ["09:01:00", "09:02:00", "09:03:00", "09:04:00"], []),
        # The one that is within the grace is the latest.
        ("latest", ["09:04:00"], [["missed", 3]]),
        ("skip", ["09:04:00"], [["missed", 3]]),
    ],
)
def test_late_occurrences_follow_the_misfire_policy_and_the_others_are_accounted_for(
    world: World, policy: str, runs: list[str], skipped: list[list[object]]
) -> None:
    schedule = world.create(cron="* * * * *", start_at=utc("09:01:00"), end_at=utc("09:05:00"))
    world.sql("delete from job_run")
    world.sql("update schedule set misfire = :policy", policy=policy)
    world.sql("update calendar set planned_through = :cursor, next_fire_at = :next", cursor=T0, next=utc("09:01:00"))
    world.clock.set("09:04:59")
    world.tick()
    assert world.planned(schedule) == runs
    assert world.sql("select reason, occurrences from skipped_range") == skipped


def test_after_outage_is_capped_to_the_newest_and_the_rest_is_one_skipped_range(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.clock.move(hours=10)
    world.tick()
    planned = world.planned(schedule)
    # The two planned at creation, the newest hundred that are due, and two to come.
    due = [time for time in planned if "09:02:00" < time <= "19:00:00"]
    assert due == sorted(due)
    assert len(due) == 100
    assert due[-1] == "19:00:00"
    [[first, last, count]] = world.sql("select first_scheduled_for, last_scheduled_for, occurrences from skipped_range")
    assert (first, last) == (utc("09:03:00"), utc("17:20:00"))
    assert count == (last - first) // timedelta(minutes=1) + 1


# The second is an occurrence that is exactly as old as may be.
@pytest.mark.parametrize("now", ["2026-12-03T09:00:00.500000+00:00", "2026-12-03T10:00:00+00:00"])
def test_nothing_older_than_the_retention_is_planned_and_the_gap_is_recorded(world: World, now: str) -> None:
    schedule = world.create(cron="0 * * * *")
    ended = world.create(cron="0 * * * *", end_at=utc("12:00:00"))
    world.clock.set(now)
    world.tick(retention=timedelta(hours=24))
    rows = world.sql("select min(scheduled_for) from job_run")
    assert rows == [[utc("2026-12-02T10:00:00+00:00")]]
    assert [count for _, _, _, count in world.skipped(schedule)] == [24]
    assert [count for _, _, _, count in world.skipped(ended)] == [2]


def test_a_calendar_that_raises_is_set_aside_and_stops_no_other(world: World) -> None:
    bad, good = world.create(cron="*/2 * * * *"), world.create(cron="* * * * *")
    world.sql("update calendar set expression = 'nonsense' where id = :id", id=bad.calendar_id)
    world.clock.move(minutes=5)
    plan = world.tick()
    assert list(plan.set_aside) == [bad.calendar_id]
    assert "09:06:00" in world.planned(good)
    assert world.tick().set_aside == {}


def test_a_calendar_that_the_database_refuses_is_left_alone_and_stops_no_other(world: World) -> None:
    good = world.create(cron="* * * * *")
    far = world.create(cron="0 0 25 12 *")
    # The planner's horizon reaches a day without partitions for one calendar alone.
    world.sql(
        "update calendar set planned_through = :before, next_fire_at = :at where id = :id",
        before=utc("2026-11-01T00:00:00+00:00"),
        at=utc("2026-11-02T00:00:00+00:00"),
        id=far.calendar_id,
    )
    world.sql("update calendar set expression = '0 0 * * *' where id = :id", id=far.calendar_id)
    world.sql("update schedule set active_from = :at where id = :id", at=utc("2026-11-01T00:00:00+00:00"), id=far.id)
    world.clock.move(minutes=5)
    plan = world.tick()
    assert list(plan.refused) == [far.calendar_id]
    assert "09:06:00" in world.planned(good)


def test_a_transaction_takes_on_so_many_occurrences_and_leaves_the_other_calendars_to_the_next(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in range(2, 6):
        world.create(cron=f"*/{step} * * * *")
    world.clock.set("10:00:00")
    monkeypatch.setattr(planning, "_OCCURRENCES", 20)
    assert world.tick(more_time=so_often(2)).calendars == 1
    assert world.tick().calendars == 3


def test_a_planner_with_older_time_zone_data_leaves_a_calendar_alone(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.sql("update calendar set tzdata_version = '9999a'")
    world.clock.move(minutes=5)
    plan = world.tick()
    assert (plan.runs, plan.busy) == (0, 0)
    assert world.planned(schedule) == ["09:01:00", "09:02:00"]


def test_no_infinity_and_no_year_10000_can_be_stored(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    for value in ("infinity", "-infinity", "10000-01-01", "0044-03-15 BC"):
        with pytest.raises(Exception, match="instant_is_bounded"):
            world.sql(
                "update schedule set end_at = cast(:value as timestamptz) where id = :id", value=value, id=schedule.id
            )


def test_a_timing_needs_exactly_one_expression() -> None:
    with pytest.raises(Exception, match="exactly one"):
        Timing(cron="* * * * *", rate="1 hour")


def test_a_cursor_never_moves_back(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    before = world.sql("select planned_through, next_fire_at from calendar")
    with world.database.transaction() as transaction:
        moved = transaction.change(
            "planning.advance",
            ids=[schedule.calendar_id],
            next_fire_ats=[T0 + timedelta(seconds=2)],
            utc_offsets=[0],
            ends=[T0 + timedelta(seconds=1)],
            tzdata_version="2026a",
        )
    assert moved == 0
    assert world.sql("select planned_through, next_fire_at from calendar") == before
