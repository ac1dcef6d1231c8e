"""Fairness on a plain FIFO queue: a tenant whose endpoint hangs, with a hundred times the load, does not make others late.

Real time, real sockets and several workers, each on a connection of its own; lateness is what the others' receiver sees.
"""

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
ANSWER_SECONDS = 0.8
# Of a POST: the noisy endpoint hangs for all of it, and longer than the others take together.
DEADLINE_SECONDS = 6.0


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


def hangs(peer: Peer, _: Received) -> None:
    peer.stay_silent()


class Fleet:
    """Workers on the queue, and a planner that refills it."""

    def __init__(self, depot: Depot, connect: Callable[[], Database], limits: dict[str, int]) -> None:
        self.depot = depot
        self.limits = limits
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(connect(),)) for _ in range(WORKERS)]
        self.threads.append(threading.Thread(target=self._refill, args=(connect(),)))

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
            tenant_concurrency=self.limits["tenant_concurrency"],
        )
        while not self.stopped.wait(0.01):
            if messages := self.depot.runs.receive():
                self.depot.runs.settle(messages, courier.deliver(messages))

    def _refill(self, database: Database) -> None:
        dispatcher = Dispatcher(
            database=database, queue=self.depot.runs.queue, clock=self.depot.world.clock, **self.limits
        )
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


def p99_lateness(
    depot: Depot,
    connect: Callable[[], Database],
    limits: dict[str, int],
    receiver: Receiver,
    plan_runs: Callable[[], None],
    count: int,
) -> float:
    """Seconds from the moment the runs can be sent until the receiver has seen all but one in a hundred of them."""
    seen: list[float] = []

    def notes(peer: Peer, received: Received) -> None:
        seen.append(time.monotonic())
        answers_late(peer, received)

    receiver.script = notes
    plan_runs()
    began = time.monotonic()
    Dispatcher(database=depot.world.database, queue=depot.runs.queue, clock=depot.world.clock, **limits).dispatch(
        more_time=lambda: True
    )
    with Fleet(depot, connect, limits).at_work():
        while len(seen) < count and time.monotonic() < began + 60:
            time.sleep(0.02)
    assert len(seen) == count
    return sorted(seen)[round(count * 0.99) - 1] - began


def measure(depot: Depot, connect: Callable[[], Database], limits: dict[str, int]) -> tuple[float, float]:
    """The quiet tenants' p99 lateness alone, and beside a tenant whose endpoint hangs."""
    depot.world.clock = Ticking()
    with Receiver(script=answers_late) as quiet, Receiver(script=hangs) as noisy:
        schedules = [tenant_posting_to(depot, quiet.url()) for _ in range(QUIET_TENANTS)]
        hanging = tenant_posting_to(depot, noisy.url())
        count = QUIET_TENANTS * RUNS_EACH

        def quiet_runs(seconds: range) -> None:
            for schedule_id in schedules:
                depot.backlog(schedule_id, seconds)

        def all_runs() -> None:
            quiet_runs(range(20, 20 + RUNS_EACH))
            # Due before the others: on a queue that knows no tenants they all stand in front.
            depot.backlog(hanging, range(100, 100 + count * TIMES_THE_LOAD))

        alone = p99_lateness(depot, connect, limits, quiet, lambda: quiet_runs(range(RUNS_EACH)), count)
        beside = p99_lateness(depot, connect, limits, quiet, all_runs, count)
    return alone, beside


def test_a_hanging_tenant_with_a_hundred_times_the_load_moves_the_others_p99_by_less_than_a_factor_of_two(
    depot: Depot, connect: Callable[[], Database]
) -> None:
    alone, beside = measure(depot, connect, {"tenant_queued": 100, "tenant_concurrency": 10})
    assert beside < 2 * alone, f"alone {alone:.2f} s, beside {beside:.2f} s"
