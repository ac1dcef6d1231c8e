"""Schedules that leave out dates, their own and those of named lists; editing a list retimes all that use it."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from uuid import UUID, uuid4

import pytest
from scheduler.calendar.spec import OnExcluded
from scheduler.errors import Conflict, InvalidInput, NotFound
from scheduler.exclusion_lists import ExclusionLists
from scheduler.schedules import Schedule
from scheduler.store.connection import Database
from scheduler.timing import Exclude, Timing

from tests.planning.test_races import Tenant, judge, settle_clock, tick
from tests.world import RETENTION, World, utc

ALL = (utc("2026-11-28T00:00:00+00:00"), UUID(int=0))
FIRST, SECOND, THIRD = (date(2026, 12, day) for day in (1, 2, 3))


def lists(world: World, database: Database | None = None) -> ExclusionLists:
    return ExclusionLists(database=database or world.database, clock=world.clock, retention=RETENTION)


def put(world: World, name: str, *dates: date) -> None:
    lists(world).put(world.tenant_id, uuid4(), name, dates)


def off(*names: str, dates: tuple[date, ...] = (), on_excluded: OnExcluded = OnExcluded.SKIP) -> Exclude:
    return Exclude(dates=dates, lists=names, on_excluded=on_excluded)


def all_planned(world: World, schedule: Schedule) -> list[str]:
    rows = world.sql("select scheduled_for from job_run where schedule_id = :id order by 1", id=schedule.id)
    return [f"{row[0]:%d %H:%M}" for row in rows]


def test_an_excluded_date_is_one_skipped_range_and_no_run(world: World) -> None:
    schedule = world.create(cron="0 * * * *", exclude=off(dates=(SECOND,)))
    world.clock.set("2026-12-03T01:30:00+00:00")
    world.tick()
    assert all_planned(world, schedule)[-3:] == ["01 23:00", "03 00:00", "03 01:00"]
    assert ("excluded", "00:00:00", "23:00:00", 24) in world.skipped(schedule)


def test_two_excluded_stretches_with_a_run_between_are_two_ranges(world: World) -> None:
    schedule = world.create(cron="0 12 * * *", exclude=off(dates=(FIRST, THIRD)))
    world.clock.set("2026-12-03T23:30:00+00:00")
    world.tick()
    world.edit(schedule, cron="0 12 * * *")
    assert all_planned(world, schedule) == ["02 12:00"]
    assert world.skipped(schedule) == [("excluded", "12:00:00", "12:00:00", 1)] * 2


def test_an_edit_on_an_excluded_day_records_it_up_to_then(world: World) -> None:
    schedule = world.create(cron="* * * * *", exclude=off(dates=(FIRST,)))
    world.clock.set("09:10:30")
    world.edit(schedule, cron="*/5 * * * *")
    world.clock.set("09:14:30")
    world.tick()
    assert world.planned(schedule) == ["09:15:00"]
    assert world.skipped(schedule) == [("excluded", "09:01:00", "09:02:00", 2), ("excluded", "09:03:00", "09:10:00", 8)]


def test_an_edit_takes_back_what_was_left_out_ahead_of_it(world: World) -> None:
    schedule = world.create(rate="20 seconds", start_at=utc("09:00:20"), exclude=off(dates=(FIRST,)))
    assert world.skipped(schedule) == [("excluded", "09:00:20", "09:02:00", 6)]
    world.clock.set("09:01:30")
    world.edit(schedule, cron="0 12 * * *")
    assert world.skipped(schedule) == [("excluded", "09:00:20", "09:01:20", 4)]


def test_a_date_moves_its_runs_to_the_next_day(world: World) -> None:
    exclude = off(dates=(FIRST, SECOND), on_excluded=OnExcluded.NEXT_DAY)
    schedule = world.create(cron="0 12 1,2 * *", exclude=exclude)
    world.clock.set("2026-12-03T12:00:00+00:00")
    world.tick()
    assert all_planned(world, schedule) == ["03 12:00"]
    assert world.skipped(schedule) == []


def test_schedules_share_a_calendar_only_where_they_leave_out_the_same(world: World) -> None:
    put(world, "holidays", FIRST)
    for exclude in (off(), off(dates=(FIRST,)), off(dates=(FIRST, FIRST)), off("holidays"), off("holidays")):
        world.create(cron="0 12 * * *", exclude=exclude)
    assert world.sql("select count(*) from calendar") == [[3]]


def test_an_unknown_list_is_refused_with_its_place_and_nothing_is_stored(world: World) -> None:
    put(world, "holidays", FIRST)
    with pytest.raises(InvalidInput) as refused:
        world.create(cron="0 12 * * *", exclude=off("holidays", "fairs"))
    assert [problem.pointer for problem in refused.value.problems] == ["/exclude/lists/1"]
    assert world.sql("select count(*) from schedule") == [[0]]


def test_another_tenants_list_is_unknown(world: World) -> None:
    put(world, "holidays", FIRST)
    stranger = World(login=world.login, database=world.database)
    with pytest.raises(InvalidInput, match="no exclusion list"):
        stranger.create(cron="0 12 * * *", exclude=off("holidays"))
    with pytest.raises(NotFound):
        lists(world).get(stranger.tenant_id, "holidays")


def test_an_edited_list_takes_back_planned_runs_and_gives_them_back(world: World) -> None:
    put(world, "holidays")
    schedule = world.create(cron="* * * * *", exclude=off("holidays"), max_runs=9)
    other = world.create(cron="* * * * *")
    put(world, "holidays", FIRST)
    assert (world.planned(schedule), world.planned(other)) == ([], ["09:01:00", "09:02:00"])
    assert world.sql("select runs_left from schedule where id = :id", id=schedule.id) == [[9]]
    world.clock.set("09:00:40")
    put(world, "holidays")
    assert world.planned(schedule) == ["09:01:00", "09:02:00"]
    assert world.skipped(schedule) == []


def test_an_edited_list_leaves_what_was_due_and_what_a_late_tick_owes_to_the_former_dates(world: World) -> None:
    put(world, "holidays")
    schedule = world.create(cron="* * * * *", exclude=off("holidays"))
    world.clock.set("09:05:30")
    put(world, "holidays", FIRST)
    world.clock.set("09:07:30")
    world.tick()
    world.clock.set("2026-12-02T00:00:30+00:00")
    world.tick()
    assert all_planned(world, schedule) == [
        *(f"01 09:0{minute}" for minute in range(1, 6)),
        *(f"02 00:0{minute}" for minute in range(3)),
    ]
    assert world.skipped(schedule) == [("excluded", "09:06:00", "23:59:00", 14 * 60 + 54)]


def test_a_list_is_made_listed_and_deleted_when_nobody_uses_it(world: World) -> None:
    put(world, "b", SECOND, FIRST, FIRST)
    world.clock.move(seconds=1)
    put(world, "a")
    assert [each.name for each in lists(world).list(world.tenant_id, after=ALL, most=9)] == ["b", "a"]
    assert lists(world).get(world.tenant_id, "b").dates == (FIRST, SECOND)
    schedule = world.create(cron="0 12 * * *", exclude=off("b"))
    with pytest.raises(Conflict, match="uses"):
        lists(world).delete(world.tenant_id, "b")
    world.delete(schedule)
    lists(world).delete(world.tenant_id, "b")
    with pytest.raises(NotFound):
        lists(world).delete(world.tenant_id, "b")


@pytest.mark.parametrize("seed", range(6))
def test_lists_change_while_planners_and_tenants_race(world: World, connect: Callable[[], Database], seed: int) -> None:
    """The judge knows each calendar as it stands at the end: the list ends as it began, with no date of these days."""
    put(world, "holidays", date(2026, 12, 24))
    exclude = off("holidays")
    for cron in ("* * * * *", "*/2 * * * *"):
        world.create(cron=cron, exclude=exclude)
    tenant = Tenant(world, connect(), world.clock, seed)
    tenant.create()
    editor, planner = lists(world, connect()), connect()
    for round_ in range(6):
        world.clock.move(seconds=25)
        start = threading.Barrier(3)

        def race(work: Callable[[], object], start: threading.Barrier = start) -> None:
            start.wait()
            work()

        dates = [date(2026, 12, 24 + round_ % 2)]
        jobs: list[Callable[[], object]] = [
            lambda: tick(planner, world.clock),
            lambda: [tenant.act() for _ in range(4)],
            lambda dates=dates: editor.put(world.tenant_id, uuid4(), "holidays", dates),  # type: ignore[misc]
        ]
        with ThreadPoolExecutor(3) as threads:
            for done in [threads.submit(race, job) for job in jobs]:
                done.result(timeout=60)
    settle_clock(world, [world.clock])
    judge(world)


def test_a_one_off_on_an_excluded_date_is_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="on an excluded date"):
        world.create(at="2026-12-02T12:00:00", exclude=off(dates=(SECOND,)))
    moved = Timing(
        at="2026-12-02T12:00:00", exclude=off(dates=(SECOND,), on_excluded=OnExcluded.NEXT_DAY), timezone="UTC"
    )
    schedule = world.create(moved)
    world.clock.set(utc("2026-12-03T11:59:00+00:00") + timedelta(seconds=1))
    world.tick()
    assert all_planned(world, schedule) == ["03 12:00"]
