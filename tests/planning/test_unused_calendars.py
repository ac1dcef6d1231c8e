"""Calendars that no schedule uses any more are moved by no tick, and nobody who comes back to one loses a run."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from uuid import uuid4

import pytest
from scheduler.audit import audit
from scheduler.errors import NotFound
from scheduler.exclusion_lists import ExclusionLists
from scheduler.schedules import Schedule
from scheduler.store.connection import Database
from scheduler.timing import Exclude
from scheduler.unused_calendars import retire_unused

from tests.planning.test_races import Tenant, judge, settle_clock, tick, wait_until, waiting_for_a_lock
from tests.world import RETENTION, World


def retire(world: World, database: Database | None = None) -> int:
    return retire_unused(database or world.database, world.clock, more_time=lambda: True)


def another(world: World, connect: Callable[[], Database]) -> World:
    """The same tenant on a connection of its own."""
    other = World(login=world.login, database=connect(), clock=world.clock)
    other.tenant_id = world.tenant_id
    return other


def calendar_of(world: World, schedule: Schedule) -> int:
    return world.scheduling.get(world.tenant_id, schedule.id).calendar_id


def test_a_calendar_whose_schedules_are_gone_is_moved_by_no_tick_any_more(world: World) -> None:
    world.delete(world.create(cron="* * * * *"))
    world.edit(world.create(cron="*/2 * * * *"), cron="0 12 * * *")
    assert retire(world) == 2
    assert retire(world) == 0
    world.clock.move(hours=1)
    assert world.tick().calendars == 0
    assert audit(world.database, world.clock, more_time=lambda: True).missing == 0


@pytest.mark.parametrize("state", ["active", "paused", "disabled"])
def test_a_calendar_that_a_schedule_has_is_kept_whatever_the_schedule_does(world: World, state: str) -> None:
    schedule = world.create(cron="* * * * *")
    world.delete(world.create(cron="* * * * *"))
    world.sql("update schedule set status = :state where id = :id", state=state, id=schedule.id)
    assert retire(world) == 0


def test_who_comes_back_to_a_retired_calendar_gets_another_one_and_misses_nothing(world: World) -> None:
    world.delete(world.create(cron="* * * * *"))
    moving = world.create(cron="*/2 * * * *")
    assert retire(world) == 1
    world.clock.move(hours=1)
    schedule = world.create(cron="* * * * *")
    world.edit(moving, cron="* * * * *")
    assert world.planned(schedule) == ["10:01:00", "10:02:00"]
    world.clock.move(minutes=2)
    world.tick()
    assert world.planned(schedule) == [f"10:0{minute}:00" for minute in range(1, 5)]
    assert world.planned(moving)[-4:] == world.planned(schedule)
    assert calendar_of(world, moving) == calendar_of(world, schedule)
    assert audit(world.database, world.clock, more_time=lambda: True).missing == 0


@pytest.mark.parametrize("change", ["create", "edit"])
def test_a_change_that_waits_for_a_retirement_does_not_end_on_the_retired_calendar(
    world: World, connect: Callable[[], Database], change: str
) -> None:
    world.delete(world.create(cron="* * * * *"))
    schedule = world.create(cron="0 12 * * *")
    changing, retiring = another(world, connect), connect()
    with ThreadPoolExecutor(1) as threads:
        with retiring.transaction() as transaction:
            held = [row["id"] for row in transaction.run("unused_calendars.hold", most=10)]
            if change == "create":
                done = threads.submit(changing.create, cron="* * * * *")
            else:
                done = threads.submit(changing.edit, schedule, cron="* * * * *")
            wait_until(lambda: waiting_for_a_lock(world) == 1)
            assert transaction.change("unused_calendars.retire", ids=held, now=world.clock.now) == 1
        changed = done.result(timeout=30)
    assert changed.calendar_id not in held
    world.clock.move(minutes=2)
    world.tick()
    assert world.planned(changed) == [f"09:0{minute}:00" for minute in range(1, 5)]


def test_a_change_under_way_keeps_its_calendar_from_being_retired(
    world: World, connect: Callable[[], Database]
) -> None:
    schedule = world.create(cron="* * * * *")
    world.delete(schedule)
    with connect().transaction() as transaction:
        transaction.run("schedules.lock_calendars", ids=[schedule.calendar_id])
        assert retire(world) == 0
    assert retire(world) == 1


def test_a_schedule_that_came_between_the_look_and_the_locks_keeps_its_calendar(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    with world.database.transaction() as transaction:
        retired = transaction.change("unused_calendars.retire", ids=[schedule.calendar_id], now=world.clock.now)
    assert retired == 0


def test_a_delete_that_waits_for_a_delete_and_a_retirement_finds_nothing(world: World) -> None:
    schedule = world.create(cron="* * * * *")
    world.delete(schedule)
    assert retire(world) == 1
    with pytest.raises(NotFound):
        world.delete(schedule)


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_lost_where_schedules_come_and_go_while_calendars_are_retired(
    world: World, connect: Callable[[], Database], seed: int
) -> None:
    chance = random.Random(seed)
    tenants = [Tenant(world, connect(), world.clock, seed * 10 + number) for number in range(2)]
    planner, retiring = connect(), connect()

    def come_and_go(tenant: Tenant) -> None:
        for _ in range(8):
            tenant.act()
            for schedule_id in [each for each in tenant.mine if tenant.random.random() < 0.5]:
                tenant.delete(schedule_id)

    for _ in range(5):
        world.clock.move(seconds=chance.choice((20, 65, 200)))
        with ThreadPoolExecutor(4) as threads:
            jobs: list[Callable[[], object]] = [lambda each=each: come_and_go(each) for each in tenants]  # type: ignore[misc]
            jobs += [lambda: tick(planner, world.clock), lambda: [retire(world, retiring) for _ in range(8)]]
            for done in [threads.submit(job) for job in jobs]:
                done.result(timeout=60)
    settle_clock(world, [world.clock])
    judge(world)
    [[in_use]] = world.sql(
        "select count(*) from schedule as s inner join calendar as c on s.calendar_id = c.id"
        " where s.status <> 'deleted' and c.retired_at is not null"
    )
    assert in_use == 0


def test_newer_zone_data_and_an_edited_list_pass_over_retired_calendars(world: World) -> None:
    lists = ExclusionLists(database=world.database, clock=world.clock, retention=RETENTION)
    lists.put(world.tenant_id, uuid4(), "holidays", [])
    world.delete(world.create(cron="* * * * *", exclude=Exclude(lists=("holidays",))))
    retire(world)
    world.sql("update calendar set tzdata_version = '2000a'")
    before = world.sql("select * from calendar")
    world.clock.move(minutes=30)
    lists.put(world.tenant_id, uuid4(), "holidays", [date(2026, 12, 1)])
    plan = world.tick()
    assert (plan.shifted, plan.refused) == (0, {})
    assert world.sql("select * from calendar") == before
