"""Maintenance: partitions stand ahead, old ones go, and no run leaves without a recorded outcome."""

from datetime import date, timedelta

import pg8000.native
import pytest
from scheduler.maintenance import AHEAD, Upkeep, maintain

from local.postgres import Server
from tests.conftest import FIRST_DAY
from tests.depot import Depot
from tests.world import T0, World


def upkeep(world: World, retention_days: int = 35) -> Upkeep:
    return maintain(world.database, world.clock, retention=timedelta(days=retention_days), more_time=lambda: True)


def analyse_catalogue(server: Server, database: str) -> None:
    """What autovacuum does sooner or later."""
    superuser = pg8000.native.Connection(
        server.user, host=server.host, port=server.port, database=database, password=server.password
    )
    superuser.run("analyze pg_class, pg_inherits")
    superuser.close()


def days(world: World, table: str = "job_run") -> list[date]:
    rows = world.sql(
        "select right(relname, 8) from pg_inherits join pg_class on inhrelid = oid "
        "where inhparent = cast(:table as regclass) order by 1",
        table=table,
    )
    return [date.fromisoformat(row[0]) for row in rows]


def test_after_months_without_maintenance_there_is_a_place_for_what_is_caught_up(world: World) -> None:
    schedule = world.create(cron="0 12 * * *")
    world.clock.set("2027-01-05T13:00:00+00:00")
    upkeep(world)
    assert days(world) == [date(2026, 12, 1) + timedelta(days=number) for number in range(35 + AHEAD.days + 1)]
    assert world.tick(retention=timedelta(days=35)).refused == {}
    assert len(world.planned(schedule)) == 35


def test_partitions_stand_two_months_ahead_and_a_second_call_makes_none(world: World) -> None:
    assert upkeep(world).made > 0
    assert days(world)[-1] == T0.date() + AHEAD
    assert days(world) == days(world, "attempt")
    assert upkeep(world).made == 0


@pytest.mark.parametrize("statistics", [False, True])
def test_days_older_than_the_retention_are_dropped(world: World, server: Server, statistics: bool) -> None:
    """With statistics of its own tables the server may choose to look at the names of all tables first."""
    upkeep(world)
    if statistics:
        analyse_catalogue(server, world.login.database)
    world.clock.move(days=10)
    done = upkeep(world, retention_days=7)
    assert done.dropped == 6
    assert days(world)[0] == FIRST_DAY + timedelta(days=6)


def test_an_unfinished_run_ends_as_expired_with_its_event_before_its_day_is_dropped(depot: Depot) -> None:
    depot.one_run("http://127.0.0.1:9/")
    depot.world.clock.move(days=10)
    assert upkeep(depot.world, retention_days=7).expired == 1
    [[detail]] = depot.world.sql("select detail from outbox where type = 'schedule.run.failed'")
    assert detail["reason"] == "expired"


def test_a_day_that_somebody_reads_is_kept_for_the_next_time(world: World) -> None:
    login = world.login
    reader = pg8000.native.Connection(
        login.user, host=login.host, port=login.port, database=login.database, password=login.password
    )
    reader.run("begin")
    reader.run("select count(*) from job_run_20261128")
    world.clock.move(days=10)
    done = upkeep(world, retention_days=7)
    assert done.kept == ("2026-11-28",)
    assert done.dropped == 5
    reader.run("rollback")
    reader.close()
    assert upkeep(world, retention_days=7).dropped == 1


def test_what_there_is_no_time_for_is_kept(world: World) -> None:
    world.clock.move(days=10)
    done = maintain(world.database, world.clock, retention=timedelta(days=7), more_time=lambda: False)
    assert (done.dropped, len(done.kept)) == (0, 6)
