"""A tenant's long backlog: a look at what is due reads what it sends and not what waits, and no tenant waits for another."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from scheduler.dispatch import Dispatcher
from scheduler.look_ahead import LOOK_AHEAD
from scheduler.shares import TENANT_CONCURRENCY, TENANT_QUEUED
from scheduler.store.connection import _statement

from tests.delivery.test_fairness import tenant_posting_to
from tests.depot import Depot

BACKLOG = 20_000


def tenants(depot: Depot, *backlogs: int) -> list[UUID]:
    """The schedules of so many new tenants, each with a backlog of so many due runs."""
    schedules = [tenant_posting_to(depot, "http://127.0.0.1:9/") for _ in backlogs]
    for schedule_id, backlog in zip(schedules, backlogs, strict=True):
        depot.backlog(schedule_id, range(1, 1 + backlog))
    return schedules


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def rows_read(depot: Depot, **words: Any) -> int:
    """How many runs a look at what is due touches, sent or not."""
    now = depot.world.clock.now
    limits = {"tenant_queued": TENANT_QUEUED, "tenant_concurrency": TENANT_CONCURRENCY}
    text, in_order = _statement("dispatch.find_planned")
    parameters = {"now": now, "horizon": now + LOOK_AHEAD, "schedule_id": None, "most": 10_000, **limits, **words}
    with depot.world.database.transaction() as transaction:
        explained = transaction._connection.execute_unnamed(
            f"explain (analyze, format json) {text}", in_order(parameters)
        )
    [[[plan]]] = explained.rows
    assert "Planning Time" in plan, json.dumps(plan)
    return sum(
        round((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"])
        for node in nodes(plan["Plan"])
        if node.get("Relation Name", "").startswith("job_run")
    )


@pytest.mark.parametrize("of_one_schedule", [False, True])
def test_a_look_at_a_long_backlog_reads_no_more_than_it_sends(depot: Depot, of_one_schedule: bool) -> None:
    long, _ = tenants(depot, BACKLOG, 5)
    depot.world.sql("analyze job_run")
    read = rows_read(depot, schedule_id=long if of_one_schedule else None)
    assert TENANT_QUEUED <= read < 3 * TENANT_QUEUED


def test_nor_does_one_at_a_tenant_whose_deliveries_are_at_their_limit(depot: Depot) -> None:
    tenants(depot, BACKLOG)
    depot.world.sql(
        "insert into tenant_load (tenant_id, in_flight, granted) select id, :most, 0 from tenant",
        most=TENANT_CONCURRENCY,
    )
    depot.world.sql("analyze job_run")
    assert rows_read(depot) < 10


def test_tenants_that_share_small_pages_are_each_sent_all_that_they_may_have(
    depot: Depot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler.dispatch._PAGE", 6)
    long, short, tiny = tenants(depot, 30, 3, 1)
    limited = Dispatcher(
        database=depot.world.database, queue=depot.runs.queue, clock=depot.world.clock, tenant_queued=20
    )
    looks = iter(range(100))
    sent = limited.dispatch(more_time=lambda: next(looks, None) is not None)
    assert (sent.taken, sent.held_back) == (24, True)
    rows = depot.world.sql("select schedule_id, count(*) from job_run where state = 'queued' group by 1")
    assert dict(rows) == {long: 20, short: 3, tiny: 1}
    [[youngest]] = depot.world.sql(
        "select max(scheduled_for) from job_run where state = 'queued' and schedule_id = :id", id=long
    )
    assert youngest == depot.world.clock.now.replace(microsecond=0) - timedelta(seconds=11), "the oldest twenty"
