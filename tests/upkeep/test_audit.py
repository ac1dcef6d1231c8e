"""The audit finds nothing where nothing is missing, and every single thing where something is."""

import random
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from scheduler.audit import Audit, audit
from scheduler.calendar.zones import reading
from scheduler.exclusion_lists import ExclusionLists
from scheduler.store.connection import Database
from scheduler.timing import Exclude, Late, Misfire

from tests.planning.test_races import Tenant, settle_clock, tick
from tests.planning.zone_releases import paris_as
from tests.world import RETENTION, Hands, World, utc


def found(world: World, more_time: Callable[[], bool] = lambda: True) -> Audit:
    return audit(world.database, world.clock, more_time=more_time)


def test_a_run_that_is_gone_is_found(world: World) -> None:
    schedule = world.create(cron="*/5 * * * *")
    world.create(cron="*/5 * * * *")
    world.clock.move(hours=1)
    world.tick()
    assert found(world) == Audit(looked_at=48 * 12, missing=0, first=(), complete=True)
    world.sql("delete from job_run where schedule_id = :id and scheduled_for = :at", id=schedule.id, at=utc("09:30:00"))
    [missing] = found(world).first
    assert (missing.schedule_id, missing.scheduled_for) == (schedule.id, utc("09:30:00"))


def test_a_skipped_range_that_is_gone_is_found(world: World) -> None:
    world.create(cron="*/5 * * * *", misfire=Misfire(policy=Late.LATEST))
    world.clock.move(hours=1, minutes=2)
    world.tick()
    assert found(world).missing == 0
    world.sql("delete from skipped_range")
    assert found(world).missing == 11


def test_a_limited_schedule_owes_its_limit_and_no_more(world: World) -> None:
    schedule = world.create(cron="*/5 * * * *", max_runs=3)
    world.clock.move(hours=1)
    world.tick()
    assert found(world).missing == 0
    world.sql("delete from job_run where scheduled_for = :at", at=utc("09:10:00"))
    assert {each.scheduled_for for each in found(world).first} >= {utc("09:10:00")}
    assert {each.schedule_id for each in found(world).first} == {schedule.id}


def test_what_was_retimed_is_audited_by_what_it_means_since_then(world: World, tmp_path: Path) -> None:
    lists = ExclusionLists(database=world.database, clock=world.clock, retention=RETENTION)
    lists.put(world.tenant_id, uuid4(), "holidays", [])
    world.create(cron="*/5 * * * *", exclude=Exclude(lists=("holidays",)))
    world.create(cron="0 10,11,12 * * *", timezone="Europe/Paris")
    world.clock.move(minutes=30)
    lists.put(world.tenant_id, uuid4(), "holidays", [date(2026, 12, 1)])
    with reading(paris_as("Europe/London", tmp_path)):
        for _ in range(6):
            world.tick()
            world.clock.move(minutes=30)
        world.tick()
        assert found(world).missing == 0


@pytest.mark.parametrize("seed", range(10))
def test_it_finds_nothing_after_whatever_planners_and_tenants_did(
    world: World, connect: Callable[[], Database], seed: int
) -> None:
    chance = random.Random(seed)
    clocks = [world.clock, Hands()]
    planner = connect()
    tenant = Tenant(world, world.database, world.clock, seed)
    for _ in range(60):
        match chance.randrange(6):
            case 0 | 1:
                tick(planner, clocks[1])
            case 2:
                world.clock.move(seconds=chance.choice((1, 45, 600)))
                clocks[1].set(world.clock.now + timedelta(minutes=chance.choice((-60, 0, 0, 60))))
            case _:
                tenant.act()
    settle_clock(world, clocks)
    assert found(world).missing == 0


def test_it_stops_when_time_runs_out_and_says_so(world: World) -> None:
    world.create(cron="* * * * *")
    world.clock.move(hours=1)
    world.tick()
    assert found(world, lambda: False) == Audit(looked_at=0, missing=0, first=(), complete=False)
