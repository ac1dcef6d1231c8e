"""The watch: how far behind the system is, as the alarms see it."""

from datetime import timedelta

import pytest
from scheduler.watch import Watch, watch

from tests.conftest import LAST_DAY
from tests.depot import Depot
from tests.world import T0, World

ANYWHERE = "http://127.0.0.1:9/"


def _seen(world: World, *, tenant_queued: int = 100, tenant_concurrency: int = 10) -> Watch:
    return watch(world.database, world.clock, tenant_queued=tenant_queued, tenant_concurrency=tenant_concurrency)


def test_a_system_with_nothing_due_is_not_behind(world: World) -> None:
    seen = _seen(world)
    assert (seen.oldest_due, seen.planner_lag, seen.set_aside) == (timedelta(0), timedelta(0), 0)


def test_a_due_run_is_as_old_as_it_has_waited_planned_or_queued(depot: Depot) -> None:
    run_id = depot.one_run(ANYWHERE)
    depot.world.clock.move(seconds=300)
    waited = depot.world.clock.now - depot.run(run_id)["next_attempt_at"]
    assert _seen(depot.world).oldest_due == waited > timedelta(0)
    depot.dispatch()
    assert depot.run(run_id)["state"] == "queued"
    assert _seen(depot.world).oldest_due == waited


def test_a_run_that_a_pause_or_a_suspension_holds_is_not_waiting(depot: Depot) -> None:
    schedule = depot.schedule(ANYWHERE)
    depot.world.clock.move(minutes=10)
    depot.world.tick()
    assert _seen(depot.world).oldest_due > timedelta(0)
    depot.world.sql("update tenant set status = 'suspended'")
    assert _seen(depot.world).oldest_due == timedelta(0)
    depot.world.sql("update tenant set status = 'active'")
    depot.world.pause(schedule)
    assert _seen(depot.world).oldest_due == timedelta(0)


@pytest.mark.parametrize("holder", ["breaker", "overlap"])
def test_a_run_that_a_breaker_or_an_earlier_run_holds_is_not_waiting(depot: Depot, holder: str) -> None:
    depot.one_run(ANYWHERE)
    depot.world.clock.move(minutes=10)
    depot.world.sql("update job_run set held_by = :holder", holder=holder)
    assert _seen(depot.world).oldest_due == timedelta(0)


def test_the_planner_lags_by_the_age_of_the_calendar_that_was_due_first(depot: Depot) -> None:
    depot.schedule(ANYWHERE)
    depot.world.tick()
    [[due]] = depot.world.sql("select next_fire_at from calendar")
    depot.world.clock.set(due + timedelta(seconds=77))
    assert _seen(depot.world).planner_lag == timedelta(seconds=77)


def test_a_calendar_set_aside_is_counted_and_does_not_lag(depot: Depot) -> None:
    depot.schedule(ANYWHERE)
    depot.world.clock.move(minutes=10)
    depot.world.sql("update calendar set set_aside_at = :now, set_aside_reason = 'no such zone'", now=T0)
    seen = _seen(depot.world)
    assert (seen.set_aside, seen.planner_lag) == (1, timedelta(0))


def test_partitions_are_counted_in_days_from_today(world: World) -> None:
    assert _seen(world).partition_days_ahead == (LAST_DAY - T0.date()).days


def test_a_backlog_of_a_tenant_that_has_used_up_its_share_waits_for_the_tenant_alone(depot: Depot) -> None:
    depot.schedule(ANYWHERE)
    depot.world.clock.move(minutes=10)
    depot.world.tick()
    assert _seen(depot.world).oldest_due > timedelta(0)
    depot.world.sql("insert into tenant_load (tenant_id, in_flight, granted) select id, 10, 0 from tenant")
    assert _seen(depot.world).oldest_due == timedelta(0)
    depot.world.sql("update tenant_load set in_flight = 0")
    assert _seen(depot.world, tenant_queued=0).oldest_due == timedelta(0)


def test_an_endpoint_whose_breaker_is_open_is_counted(depot: Depot) -> None:
    assert _seen(depot.world).endpoints_open == 0
    depot.world.sql(
        "insert into endpoint (tenant_id, origin, state, window_started_at, attempts, failures, trips, probe_at) "
        "select id, 'https://example.com', 'open', :now, 10, 10, 1, :now from tenant",
        now=T0,
    )
    assert _seen(depot.world).endpoints_open == 1
