"""`max_runs`: a schedule makes so many runs and no more, whatever is changed, taken back or planned twice."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from scheduler.planning import plan
from scheduler.schedules import Definition, Schedule
from scheduler.store.connection import Database
from scheduler.timing import Late, Misfire, Timing

from tests.depot import Depot
from tests.planning.test_races import TIMINGS, Tenant, settle_clock, tick
from tests.world import RETENTION, Hands, World, utc


def left(world: World, schedule: Schedule) -> int | None:
    found: list[list[int | None]] = world.sql("select runs_left from schedule where id = :id", id=schedule.id)
    return found[0][0]


def test_a_limited_schedule_makes_so_many_runs_and_no_more(world: World) -> None:
    schedule = world.create(cron="* * * * *", max_runs=3)
    assert (world.planned(schedule), left(world, schedule)) == (["09:01:00", "09:02:00"], 1)
    for _ in range(3):
        world.clock.move(minutes=2)
        world.tick()
    assert (world.planned(schedule), left(world, schedule)) == (["09:01:00", "09:02:00", "09:03:00"], 0)
    assert world.skipped(schedule) == []


def test_others_on_the_same_calendar_go_on(world: World) -> None:
    world.create(cron="* * * * *", max_runs=1)
    free = world.create(cron="* * * * *")
    world.clock.move(minutes=3)
    world.tick()
    assert world.planned(free)[-1] == "09:05:00"


def test_an_edit_gives_back_what_it_takes_back(world: World) -> None:
    schedule = world.create(cron="* * * * *", max_runs=2)
    world.edit(schedule, cron="*/5 * * * *", max_runs=2)
    assert (world.planned(schedule), left(world, schedule)) == ([], 2)
    world.clock.set("09:20:00")
    world.tick()
    assert world.planned(schedule) == ["09:05:00", "09:10:00"]


def test_an_occurrence_that_is_a_run_already_does_not_count_again(world: World) -> None:
    schedule = world.create(cron="* * * * *", max_runs=2)
    world.sql(
        "update job_run set state = 'delivering', attempt = 1, lease_until = :lease where scheduled_for = :at",
        lease=utc("09:03:00"),
        at=utc("09:01:00"),
    )
    world.edit(schedule, cron="*/1 * * * *", jitter_seconds=1, max_runs=2)
    assert (world.planned(schedule), left(world, schedule)) == (["09:01:00", "09:02:00"], 0)


@pytest.mark.parametrize(("limit", "runs"), [(5, 5), (1, 2), (None, 9)])
def test_a_changed_limit_keeps_the_count(world: World, limit: int | None, runs: int) -> None:
    schedule = world.create(cron="* * * * *", max_runs=2)
    world.clock.set("09:02:30")
    world.retime(schedule, Timing(cron="* * * * *", max_runs=limit))
    world.clock.set("09:07:30")
    world.tick()
    assert len(world.planned(schedule)) == runs


def test_a_limit_lowered_below_the_count_and_raised_again_forgets_nothing(world: World) -> None:
    schedule = world.create(cron="* * * * *", max_runs=2)
    world.clock.set("09:02:30")
    world.retime(schedule, Timing(cron="* * * * *", max_runs=1))
    world.retime(schedule, Timing(cron="* * * * *", max_runs=3))
    world.clock.set("09:09:30")
    world.tick()
    assert world.planned(schedule) == ["09:01:00", "09:02:00", "09:03:00"]


def test_what_the_misfire_policy_skips_is_no_run(world: World) -> None:
    schedule = world.create(cron="*/10 * * * *", max_runs=2, misfire=Misfire(policy=Late.LATEST))
    world.clock.set("10:05:00")
    world.tick()
    assert world.planned(schedule) == ["10:00:00"]
    assert world.skipped(schedule) == [("missed", "09:10:00", "09:50:00", 5)]
    assert left(world, schedule) == 1


@pytest.mark.parametrize("limit", [2, 1])
def test_a_schedule_that_has_made_all_its_runs_misses_nothing(world: World, limit: int) -> None:
    schedule = world.create(cron="* * * * *", max_runs=2, misfire=Misfire(policy=Late.SKIP))
    world.clock.set("09:02:30")
    world.retime(schedule, replace(schedule.definition.timing, max_runs=limit))
    world.clock.set("10:05:00")
    assert world.tick().refused == {}
    assert world.skipped(schedule) == []


def test_the_last_run_of_a_complete_schedule_still_goes_out(depot: Depot) -> None:
    schedule = depot.schedule("https://127.0.0.1:9/", cron="* * * * *", max_runs=1, end_at=utc("09:01:30"))
    depot.world.clock.set("09:05:00")
    depot.world.tick()
    assert depot.dispatch().taken == 1
    [[run_id]] = depot.world.sql("select id from job_run where schedule_id = :id", id=schedule.id)
    assert [str(verdict) for verdict in depot.claim(run_id).verdicts.values()] == ["claimed"]


def test_two_planners_at_once_make_no_run_too_many(world: World, connect: Callable[[], Database]) -> None:
    schedules = [world.create(cron="* * * * *", max_runs=5) for _ in range(10)]
    databases = [connect(), connect()]
    for _ in range(8):
        world.clock.move(minutes=1)
        with ThreadPoolExecutor(2) as threads:
            done = [
                threads.submit(plan, database, world.clock, retention=RETENTION, more_time=lambda: True)
                for database in databases
            ]
            for each in done:
                each.result(timeout=60)
    assert {len(world.planned(schedule)) for schedule in schedules} == {5}
    assert {left(world, schedule) for schedule in schedules} == {0}


class Limited(Tenant):
    """A tenant whose schedules all make seven runs at most, whatever is changed."""

    def _definition(self) -> Definition:
        timing = replace(self.random.choice(TIMINGS), max_runs=7)
        return Definition(name=None, timing=timing, url="https://hook.example/", headers=(), payload=None)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_left_and_what_was_made_are_the_limit_in_whatever_order_things_happen(
    world: World, connect: Callable[[], Database], seed: int
) -> None:
    chance = random.Random(seed)
    clocks = [world.clock, Hands()]
    tenant, planner = Limited(world, world.database, world.clock, seed), connect()
    for _ in range(80):
        match chance.randrange(6):
            case 0 | 1:
                tick(planner, clocks[1])
            case 2:
                world.clock.move(seconds=chance.choice((1, 45, 600)))
                clocks[1].set(world.clock.now + timedelta(minutes=chance.choice((-60, 0, 0, 60))))
            case _:
                tenant.act()
    settle_clock(world, clocks)
    rows = world.sql(
        "select s.runs_left, (select count(*) from job_run as r where r.schedule_id = s.id) from schedule as s"
    )
    assert {left_over + made for left_over, made in rows} == {7}
    assert min(left_over for left_over, _ in rows) >= 0
