"""A deploy with newer zone data: planners and tenants with the older and the newer beside each other, in random order."""

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from scheduler.audit import audit
from scheduler.calendar.zones import reading
from scheduler.schedules import Definition
from scheduler.store.connection import Database
from scheduler.timing import Timing

from tests.planning.test_races import Tenant, tick
from tests.planning.zone_releases import paris_as
from tests.world import World

PARIS = "Europe/Paris"
TIMINGS = (
    Timing(cron="* * * * *", timezone=PARIS),
    Timing(cron="0,20,40 9,10,11,12,13 * * *", timezone=PARIS),
    Timing(cron="10 10,12 * * *", timezone=PARIS),
    Timing(cron="10 10,12 * * *", timezone=PARIS, jitter_seconds=30),
    Timing(cron="*/7 * * * *"),
    Timing(rate="90 seconds"),
)


class Parisian(Tenant):
    """A tenant whose schedules are by the clocks of Paris, most of them."""

    def _definition(self) -> Definition:
        timing = self.random.choice(TIMINGS)
        return Definition(name=None, timing=timing, url="https://hook.example/", headers=(), payload=None)


@pytest.mark.parametrize("zone", ["Europe/Athens", "Europe/London", "Europe/Berlin"])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_between_planners_of_both_kinds(
    world: World, connect: Callable[[], Database], tmp_path: Path, zone: str, seed: int
) -> None:
    chance = random.Random(seed)
    release = paris_as(zone, tmp_path)
    tenant, planner = Parisian(world, world.database, world.clock, seed), connect()

    def data(newer: float) -> AbstractContextManager[None]:
        return reading(release) if chance.random() < newer else nullcontext()

    for step in range(90):
        # Before the deploy all is older, within it either, behind it all is newer.
        with data(newer=(0.0, 0.5, 1.0)[step // 30]):
            match chance.randrange(4):
                case 0 | 1:
                    tick(planner, world.clock)
                case 2:
                    world.clock.move(seconds=chance.choice((5, 50, 400)))
                case _:
                    tenant.act()
    with reading(release):
        world.clock.move(seconds=1)
        world.tick()
        assert audit(world.database, world.clock, more_time=lambda: True, period=timedelta(hours=6)).missing == 0
    rows = world.sql("select count(*), count(distinct (schedule_id, scheduled_for)) from job_run")
    assert rows[0][0] == rows[0][1] > 0
    assert world.sql("select count(*) from calendar where tzdata_version <> '9999z' and next_fire_at is not null") == [
        [0]
    ]
