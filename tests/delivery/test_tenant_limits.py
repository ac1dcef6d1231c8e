"""Limits of a tenant: how many of its runs are queued and how many are under way, so that nobody stands behind them."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

from scheduler.dispatch import Dispatcher
from scheduler.leases import Verdict, claim
from scheduler.releasing import recount
from scheduler.schedules import Definition
from scheduler.store.connection import Database
from scheduler.timing import Timing

from tests.depot import Depot
from tests.http.receiver import Receiver

LEASE = timedelta(seconds=30)


def dispatcher(depot: Depot, **limits: int) -> Dispatcher:
    return Dispatcher(database=depot.world.database, queue=depot.runs.queue, clock=depot.world.clock, **limits)


def due(depot: Depot, count: int) -> list[UUID]:
    return [depot.one_run("http://127.0.0.1:9/") for _ in range(count)]


def in_flight(depot: Depot) -> int:
    [[count]] = depot.world.sql("select in_flight from tenant_load")
    return int(count)


def test_of_a_tenants_backlog_only_so_many_runs_are_queued(depot: Depot) -> None:
    limited = dispatcher(depot, tenant_queued=5)
    with Receiver() as receiver:
        for _ in range(12):
            depot.one_run(receiver.url())
        assert limited.dispatch(more_time=lambda: True).taken == 5
        assert limited.dispatch(more_time=lambda: True).taken == 0
        depot.deliver(*[row[0] for row in depot.world.sql("select id from job_run where state = 'queued' limit 3")])
        assert limited.dispatch(more_time=lambda: True).taken == 3
    assert depot.world.sql("select count(*) from job_run where state = 'queued'") == [[5]]


def test_the_oldest_go_first_and_another_tenant_has_room_of_its_own(depot: Depot) -> None:
    for _ in range(8):
        depot.world.clock.move(seconds=1)
        due(depot, 1)
    other = uuid4()
    with depot.world.database.transaction() as transaction:
        transaction.run("tenants.insert", id=other, name="Other", now=depot.world.clock.now)
    definition = Definition(
        name=None, timing=Timing(cron="* * * * *"), url="http://127.0.0.1:9/", headers=(), payload=None
    )
    depot.world.scheduling.create(other, uuid4(), definition, changed_by="test")
    assert dispatcher(depot, tenant_queued=3).dispatch(more_time=lambda: True).taken == 3 + 2
    rows = depot.world.sql(
        "select extract(second from scheduled_for) from job_run where state = 'queued' and tenant_id = :id order by 1",
        id=depot.world.tenant_id,
    )
    assert [int(row[0]) for row in rows] == [1, 2, 3]


def test_a_tenant_at_its_limit_is_sent_nothing_and_what_comes_all_the_same_is_put_back(depot: Depot) -> None:
    runs = due(depot, 6)
    depot.tenant_concurrency = 4
    claimed = claim(
        depot.world.database,
        depot.world.clock,
        dict.fromkeys(runs),
        lease=LEASE,
        alone=False,
        tenant_concurrency=depot.tenant_concurrency,
    )
    assert len(claimed.leases) == 4
    assert sorted(claimed.verdicts.values()) == [Verdict.BUSY] * 2 + [Verdict.CLAIMED] * 4
    busy = [run_id for run_id, verdict in claimed.verdicts.items() if verdict is Verdict.BUSY]
    assert {(depot.run(run_id)["state"], depot.run(run_id)["attempt"]) for run_id in busy} == {("planned", 0)}
    assert dispatcher(depot, tenant_concurrency=4).dispatch(more_time=lambda: True).taken == 0
    assert dispatcher(depot, tenant_concurrency=5).dispatch(more_time=lambda: True).taken == 2


def test_every_recorded_outcome_makes_room_for_another(depot: Depot) -> None:
    depot.tenant_concurrency = 3
    with Receiver() as receiver:
        runs = [depot.one_run(receiver.url()) for _ in range(7)]
        while waiting := [run_id for run_id in runs if depot.run(run_id)["state"] != "succeeded"]:
            depot.deliver(*waiting)
    assert len(receiver.requests) == 7
    assert in_flight(depot) == 0


def test_workers_that_claim_at_once_never_have_more_under_way_than_the_limit(
    depot: Depot, connect: Callable[[], Database]
) -> None:
    runs = due(depot, 40)
    start = threading.Barrier(4)

    def work(place: int, database: Database) -> int:
        start.wait()
        mine = dict.fromkeys(runs[place * 10 : place * 10 + 10])
        done = claim(database, depot.world.clock, mine, lease=LEASE, alone=False, tenant_concurrency=7)
        return len(done.leases)

    with ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(work, place, connect()) for place in range(4)]
        claimed = [job.result(timeout=60) for job in jobs]
    assert sum(claimed) == 7
    assert in_flight(depot) == 7


def test_what_lost_workers_left_counted_is_counted_anew(depot: Depot) -> None:
    depot.claim(*due(depot, 3))
    depot.world.clock.move(seconds=61)
    depot.sweep()
    assert in_flight(depot) == 3
    assert recount(depot.world.database) == 1
    assert in_flight(depot) == 0
    assert recount(depot.world.database) == 0


def test_a_backlog_is_sent_on_while_it_drains_within_one_tick(depot: Depot) -> None:
    with Receiver() as receiver:
        runs = [depot.one_run(receiver.url()) for _ in range(9)]
        limited = dispatcher(depot, tenant_queued=4)
        sent = limited.dispatch(more_time=lambda: True)

        def deliver_what_is_queued() -> None:
            depot.deliver(*[row[0] for row in depot.world.sql("select id from job_run where state = 'queued'")])

        sent = limited.refill(sent, more_time=lambda: True, pause=deliver_what_is_queued)
        deliver_what_is_queued()
    assert sent.taken == 9
    assert {depot.run(run_id)["state"] for run_id in runs} == {"succeeded"}
