"""Fairness on a plain FIFO queue: a tenant whose endpoint hangs, with a hundred times the load, does not make others late.

Real time, real sockets and several workers, each on a connection of its own; lateness is what the others' receiver sees.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from scheduler.delivery import Courier
from scheduler.dispatch import Dispatcher
from scheduler.store.connection import Database, Transaction

from tests.depot import SECRET, Depot
from tests.http.receiver import Peer, Received, Receiver
from tests.world import T0, Hands

WORKERS = 6
QUIET_TENANTS = 15
RUNS_EACH = 10
TIMES_THE_LOAD = 100
# Most of what is measured is this wait, and little of it this machine's own work.
ANSWER_SECONDS = 1.6
# Of a POST: the noisy endpoint hangs for all of it, and longer than the others take together.
DEADLINE_SECONDS = 15.0
# Lateness alone; beside the noisy tenant it has its factor to stay under, and is waited for no longer than that.
LONGEST_ALONE = 30.0
FACTOR = 2.0
LIMITS = {"tenant_queued": 100, "tenant_concurrency": 10}


class Ticking(Hands):
    """Goes on from the test's day as time goes on here."""

    def __init__(self) -> None:
        super().__init__()
        self.began = time.monotonic()

    def __call__(self, transaction: Transaction) -> datetime:
        return T0 + timedelta(seconds=time.monotonic() - self.began)


def answers_late(peer: Peer, _: Received) -> None:
    if not peer.stopped.wait(ANSWER_SECONDS):
        peer.send(b"HTTP/1.1 204 X\r\n\r\n")


class Fleet:
    """Workers on the queue, and a planner that refills it. Whoever waits for `stopped` waits as long as they work."""

    def __init__(self, depot: Depot, connect: Callable[[], Database]) -> None:
        self.depot = depot
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(connect(),)) for _ in range(WORKERS)]
        self.threads.append(threading.Thread(target=self._refill, args=(connect(),)))

    def hangs(self, peer: Peer, _: Received) -> None:
        self.stopped.wait()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        for thread in self.threads:
            thread.start()
        try:
            yield
        finally:
            self.stopped.set()
            for thread in self.threads:
                thread.join(60)

    def _work(self, database: Database) -> None:
        courier: Courier = replace(
            self.depot.courier(database),
            deadline_seconds=DEADLINE_SECONDS,
            tenant_concurrency=LIMITS["tenant_concurrency"],
        )
        while not self.stopped.wait(0.01):
            if messages := self.depot.runs.receive():
                self.depot.runs.settle(messages, courier.deliver(messages))

    def _refill(self, database: Database) -> None:
        dispatcher = Dispatcher(database=database, queue=self.depot.runs.queue, clock=self.depot.world.clock, **LIMITS)
        while not self.stopped.wait(0.5):
            dispatcher.dispatch(more_time=lambda: not self.stopped.is_set())


def tenant_posting_to(depot: Depot, url: str) -> UUID:
    """The schedule of a new tenant; it fires far from here, its runs are made by hand."""
    depot.world.tenant_id = uuid4()
    with depot.world.database.transaction() as transaction:
        now = depot.world.clock(transaction)
        transaction.run("tenants.insert", id=depot.world.tenant_id, name="One of many", now=now)
        ciphertext = depot.keys.encrypt(depot.world.tenant_id, SECRET)
        transaction.run(
            "signing_secrets.insert", id=uuid4(), tenant_id=depot.world.tenant_id, ciphertext=ciphertext, now=now
        )
    return depot.schedule(url, cron="0 0 1 1 *").id


def p99_lateness(depot: Depot, fleet: Fleet, receiver: Receiver, count: int, *, within: float) -> float:
    """Seconds from the moment the runs can be sent until the receiver has seen all but one in a hundred of them.

    Infinite where that takes longer than `within`.
    """
    seen: list[float] = []

    def notes(peer: Peer, received: Received) -> None:
        seen.append(time.monotonic())
        answers_late(peer, received)

    receiver.script = notes
    counted = round(count * 0.99)
    began = time.monotonic()
    Dispatcher(database=depot.world.database, queue=depot.runs.queue, clock=depot.world.clock, **LIMITS).dispatch(
        more_time=lambda: time.monotonic() < began + within
    )
    with fleet.at_work():
        while len(seen) < counted and time.monotonic() < began + within:
            time.sleep(0.02)
    return sorted(seen)[counted - 1] - began if len(seen) >= counted else math.inf


def measure(depot: Depot, connect: Callable[[], Database]) -> tuple[float, float]:
    """The quiet tenants' p99 lateness alone, and beside a tenant whose endpoint hangs."""
    depot.world.sql("delete from job_run")
    while messages := depot.runs.receive():
        depot.runs.settle(messages, [])
    depot.world.clock = Ticking()
    with Receiver(script=answers_late) as quiet, Receiver() as noisy:
        schedules = [tenant_posting_to(depot, quiet.url()) for _ in range(QUIET_TENANTS)]
        hanging = tenant_posting_to(depot, noisy.url())
        count = QUIET_TENANTS * RUNS_EACH

        def quiet_runs(seconds: range) -> None:
            for schedule_id in schedules:
                depot.backlog(schedule_id, seconds)

        quiet_runs(range(RUNS_EACH))
        alone = p99_lateness(depot, Fleet(depot, connect), quiet, count, within=LONGEST_ALONE)
        quiet_runs(range(20, 20 + RUNS_EACH))
        # Due before the others: on a queue that knows no tenants they all stand in front.
        depot.backlog(hanging, range(100, 100 + count * TIMES_THE_LOAD))
        fleet = Fleet(depot, connect)
        noisy.script = fleet.hangs
        beside = p99_lateness(depot, fleet, quiet, count, within=FACTOR * min(alone, LONGEST_ALONE))
    return alone, beside


def test_a_hanging_tenant_with_a_hundred_times_the_load_moves_the_others_p99_by_less_than_a_factor_of_two(
    depot: Depot, connect: Callable[[], Database]
) -> None:
    """The better of two tries counts: a machine that is busy with other things must not be taken for an unfair queue."""
    tries = [measure(depot, connect)]
    if tries[0][1] >= FACTOR * tries[0][0]:
        tries.append(measure(depot, connect))
    assert any(beside < FACTOR * alone for alone, beside in tries), f"seconds alone and beside it: {tries}"
