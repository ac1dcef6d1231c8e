"""Overlap: what becomes of a run that is due while an earlier one of its schedule is in flight, judged at its claim."""

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from scheduler.leases import Verdict, claim
from scheduler.redelivery import Redelivery
from scheduler.releasing import release
from scheduler.schedules import OverlapPolicy, Schedule
from scheduler.store.connection import Database

from tests.depot import Depot
from tests.http.receiver import Receiver, says
from tests.planning.test_races import wait_until, waiting_for_a_lock

LEASE = timedelta(seconds=30)
FAILS = says(b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")
REFUSES = says(b"HTTP/1.1 400 X\r\nX-No-Retry: 1\r\nContent-Length: 0\r\n\r\n")


def minutely(depot: Depot, policy: OverlapPolicy, minutes: int, url: str = "http://127.0.0.1:9/") -> list[UUID]:
    """The runs of so many minutes, all due."""
    schedule = depot.schedule(url, decided={"overlap": policy})
    depot.world.clock.set(f"09:{minutes:02}:30")
    depot.world.tick()
    return depot.run_ids(schedule)[:minutes]


def states(depot: Depot, run_ids: list[UUID]) -> list[tuple[str, str | None, str | None]]:
    return [(run["state"], run["reason"], run["held_by"]) for run in map(depot.run, run_ids)]


DELIVERING = ("delivering", None, None)
SKIPPED = ("cancelled", "overlap", None)
WAITING = ("planned", None, "overlap")
FREE = ("planned", None, None)


def test_runs_that_may_overlap_do(depot: Depot) -> None:
    runs = minutely(depot, OverlapPolicy.ALLOW, 3)
    assert len(depot.claim(*runs).leases) == 3
    assert depot.world.sql("select count(*) from overlap_turn") == [[0]]


def test_a_run_that_is_due_while_another_is_posted_is_skipped_and_accounted_for(depot: Depot) -> None:
    first, second = minutely(depot, OverlapPolicy.SKIP, 2)
    depot.claim(first)
    assert depot.deliver(second) == []
    assert states(depot, [first, second]) == [DELIVERING, SKIPPED]
    assert depot.events() == ["schedule.run.skipped"]


def test_a_run_that_waits_for_its_retry_is_in_flight(depot: Depot) -> None:
    """Not yet acknowledged nor exhausted: whether a request is open at the moment is of no matter."""
    with Receiver(script=FAILS) as receiver:
        first, second = minutely(depot, OverlapPolicy.SKIP, 2, receiver.url())
        depot.deliver(first)
        assert depot.run(first)["state"] == "queued"
        depot.deliver(second)
    assert states(depot, [second]) == [SKIPPED]


@pytest.mark.parametrize("script", [None, REFUSES])
def test_once_it_is_acknowledged_or_failed_for_good_the_next_goes(depot: Depot, script: Callable[..., None]) -> None:
    with Receiver() as receiver:
        receiver.script = script or receiver.script
        first, second = minutely(depot, OverlapPolicy.SKIP, 2, receiver.url())
        depot.deliver(first)
        depot.deliver(second)
    assert len(receiver.requests) == 2


def test_the_look_ahead_skips_nothing(depot: Depot) -> None:
    """A run that is queued ahead of its time is judged when it is due, not before."""
    with Receiver() as receiver:
        schedule = depot.schedule(receiver.url(), decided={"overlap": OverlapPolicy.SKIP})
        depot.world.clock.set("09:01:00")
        first, second = depot.run_ids(schedule)
        depot.dispatch()
        depot.claim(first)
        depot.deliver(second)
        assert depot.run(second)["state"] == "queued"
        depot.world.clock.set("09:01:45")
        depot.deliver(first)
        depot.world.clock.set("09:02:00")
        depot.deliver(second)
    assert depot.run(second)["state"] == "succeeded"


def test_of_one_batch_the_oldest_goes(depot: Depot) -> None:
    runs = minutely(depot, OverlapPolicy.SKIP, 3)
    depot.claim(*reversed(runs))
    assert states(depot, runs) == [DELIVERING, SKIPPED, SKIPPED]


def test_queued_runs_wait_and_go_one_by_one_oldest_first(depot: Depot) -> None:
    with Receiver() as receiver:
        runs = minutely(depot, OverlapPolicy.QUEUE, 4, receiver.url())
        depot.claim(runs[0])
        depot.deliver(*reversed(runs[1:]))
        assert states(depot, runs) == [DELIVERING, WAITING, WAITING, WAITING]
        assert depot.dispatch().taken == 2, "only the two that are not due yet; what waits is not sent"
        depot.world.clock.move(seconds=31)
        depot.deliver(runs[0])
        sent: list[UUID] = []
        for _ in range(3):
            [run_id] = [each for each, state in zip(runs, states(depot, runs), strict=True) if state == FREE]
            sent.append(run_id)
            depot.deliver(run_id)
    assert sent == runs[1:]
    assert depot.runs.count() == 2 + 3


def test_a_run_that_becomes_due_does_not_overtake_one_that_waited(depot: Depot) -> None:
    """The first has ended and the second may go, though its message is still under way when the third is due."""
    with Receiver() as receiver:
        first, second, third = minutely(depot, OverlapPolicy.QUEUE, 3, receiver.url())
        depot.deliver(first, second)
        assert states(depot, [first, second]) == [("succeeded", None, None), FREE]
        depot.deliver(third)
        assert states(depot, [second, third]) == [FREE, WAITING]
        depot.deliver(second)
        assert states(depot, [second, third]) == [("succeeded", None, None), FREE]
        depot.deliver(third)
    assert len(receiver.requests) == 3
    assert depot.world.sql("select count(*) from overlap_turn") == [[0]]


def test_the_turn_of_a_run_that_was_let_go_and_then_cancelled_is_free(depot: Depot) -> None:
    with Receiver() as receiver:
        first, second, third = minutely(depot, OverlapPolicy.QUEUE, 3, receiver.url())
        depot.deliver(first, second)
        depot.world.sql(
            "update job_run set state = 'cancelled', reason = 'deleted', ended_at = :now where id = :id",
            now=depot.world.clock.now,
            id=second,
        )
        depot.deliver(third)
    assert depot.run(third)["state"] == "succeeded"


def test_what_a_person_asks_for_does_not_wait_for_a_run_that_a_pause_holds(depot: Depot) -> None:
    with Receiver() as receiver:
        first, second = minutely(depot, OverlapPolicy.QUEUE, 2, receiver.url())
        depot.claim(first, second)
        depot.world.sql("update schedule set status = 'paused'")
        depot.world.clock.move(seconds=31)
        Redelivery(database=depot.world.database, clock=depot.world.clock).cancel(depot.world.tenant_id, first)
        depot.world.sql("update job_run set state = 'failed', reason = 'rejected' where id = :id", id=first)
        Redelivery(database=depot.world.database, clock=depot.world.clock).redeliver(depot.world.tenant_id, first)
        depot.deliver(first)
    assert depot.run(first)["state"] == "succeeded"
    assert states(depot, [second]) == [WAITING]


def test_a_hundred_wait_and_the_next_is_skipped(depot: Depot) -> None:
    runs = rates(depot, 104)
    assert len(runs) == 104
    depot.claim(runs[0])
    for start in range(1, 104, 10):
        depot.claim(*runs[start : start + 10])
    assert states(depot, runs) == [DELIVERING, *[WAITING] * 100, *[SKIPPED] * 3]


def rates(depot: Depot, count: int) -> list[UUID]:
    """So many due runs of one schedule whose runs wait for each other."""
    schedule = depot.schedule("http://127.0.0.1:9/", rate="10 seconds", decided={"overlap": OverlapPolicy.QUEUE})
    depot.world.clock.move(minutes=18)
    depot.world.tick()
    depot.world.clock.move(minutes=3)
    return depot.run_ids(schedule)[:count]


def test_workers_that_judge_at_once_let_a_hundred_wait_together(depot: Depot, connect: Callable[[], Database]) -> None:
    """Each of them sees 95 that wait, and brings ten more."""
    runs = rates(depot, 116)
    depot.claim(runs[0])
    for start in range(1, 96, 10):
        depot.claim(*runs[start : min(start + 10, 96)])
    words = {"lease": LEASE, "alone": False}
    first, second = connect(), connect()
    with ThreadPoolExecutor(1) as threads:
        with first.joined():
            claim(first, depot.world.clock, dict.fromkeys(runs[96:106]), **words)  # type: ignore[arg-type]
            other = threads.submit(claim, second, depot.world.clock, dict.fromkeys(runs[106:116]), **words)
            wait_until(lambda: other.done() or waiting_for_a_lock(depot.world) == 1)
        other.result(timeout=30)
    assert states(depot, runs[1:]) == [WAITING] * 100 + [SKIPPED] * 15


def test_a_second_message_for_a_run_that_waits_leaves_it_waiting(depot: Depot) -> None:
    runs = rates(depot, 101)
    depot.claim(runs[0])
    for start in range(1, 101, 10):
        depot.claim(*runs[start : start + 10])
    depot.deliver(*runs[41:51])
    assert states(depot, runs[1:]) == [WAITING] * 100


def test_a_turn_that_was_never_given_back_is_free_once_its_run_has_ended(depot: Depot) -> None:
    first, second = minutely(depot, OverlapPolicy.SKIP, 2)
    depot.claim(first)
    depot.world.sql("update job_run set state = 'failed', reason = 'expired', lease_until = null, ended_at = :now"
                    " where id = :id", now=depot.world.clock.now, id=first)  # fmt: skip
    assert depot.claim(second).verdicts == {second: Verdict.CLAIMED}


def test_the_turn_of_a_run_that_was_made_since_a_claim_began_is_not_taken_over(
    depot: Depot, connect: Callable[[], Database]
) -> None:
    """The claim waits for its tenant's load; what was committed meanwhile its snapshot does not show."""
    [first] = minutely(depot, OverlapPolicy.QUEUE, 1)
    [[schedule_id]] = depot.world.sql("select schedule_id from job_run where id = :id", id=first)
    depot.claim(depot.one_run("http://127.0.0.1:9/"))
    words = {"lease": LEASE, "alone": False}
    holder, worker = connect(), connect()
    with ThreadPoolExecutor(1) as threads:
        with holder.transaction() as transaction:
            transaction._connection.run("select from tenant_load for update")
            late = threads.submit(claim, worker, depot.world.clock, {first: None}, **words)  # type: ignore[arg-type]
            wait_until(lambda: late.done() or waiting_for_a_lock(depot.world) == 1)
            [second] = depot.backlog(schedule_id, range(90, 91))
            depot.world.sql(
                "update job_run set state = 'delivering', attempt = 1, lease_until = :until where id = :id",
                until=depot.world.clock.now + LEASE,
                id=second,
            )
            depot.world.sql(
                "insert into overlap_turn select schedule_id, id, scheduled_for, 1 from job_run where id = :id",
                id=second,
            )
        assert late.result(timeout=30).verdicts == {first: Verdict.WAITING}


def test_waiting_runs_are_let_go_by_the_planner_where_nobody_else_did(depot: Depot) -> None:
    runs = minutely(depot, OverlapPolicy.QUEUE, 3)
    depot.claim(runs[0])
    depot.claim(*runs[1:])
    assert release(depot.world.database, depot.world.clock).turns == 0
    depot.world.clock.move(seconds=31)
    Redelivery(database=depot.world.database, clock=depot.world.clock).cancel(depot.world.tenant_id, runs[0])
    assert release(depot.world.database, depot.world.clock).turns == 1
    assert states(depot, runs[1:]) == [("planned", None, None), WAITING]


def test_nor_does_a_run_overtake_one_that_the_planner_let_go(depot: Depot) -> None:
    first, second, third = minutely(depot, OverlapPolicy.QUEUE, 3)
    depot.claim(first, second)
    depot.world.clock.move(seconds=31)
    Redelivery(database=depot.world.database, clock=depot.world.clock).cancel(depot.world.tenant_id, first)
    release(depot.world.database, depot.world.clock)
    assert depot.claim(third).verdicts == {third: Verdict.WAITING}
    assert depot.claim(second).verdicts == {second: Verdict.CLAIMED}


def test_waiting_runs_all_go_once_their_schedule_lets_them_overlap(depot: Depot) -> None:
    runs = minutely(depot, OverlapPolicy.QUEUE, 4)
    depot.claim(runs[0])
    depot.claim(*runs[1:])
    depot.world.sql("update schedule set overlap_policy = 'allow'")
    assert release(depot.world.database, depot.world.clock).turns == 3


def test_what_a_person_asked_for_waits_rather_than_being_skipped(depot: Depot) -> None:
    with Receiver(script=REFUSES) as receiver:
        first, second = minutely(depot, OverlapPolicy.SKIP, 2, receiver.url())
        depot.deliver(first)
        Redelivery(database=depot.world.database, clock=depot.world.clock).redeliver(depot.world.tenant_id, first)
        depot.claim(second)
        depot.deliver(first)
    assert states(depot, [first]) == [WAITING]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("policy", [OverlapPolicy.SKIP, OverlapPolicy.QUEUE])
def test_two_workers_that_claim_at_once_never_both_pass(
    depot: Depot, connect: Callable[[], Database], policy: OverlapPolicy, seed: int
) -> None:
    """Each worker has another run of each schedule: of every schedule exactly one is let through."""
    schedules: list[Schedule] = [
        depot.schedule("http://127.0.0.1:9/", rate="10 seconds", decided={"overlap": policy}) for _ in range(4)
    ]
    depot.world.clock.move(minutes=1, seconds=30)
    depot.world.tick()
    runs = [depot.run_ids(schedule)[:4] for schedule in schedules]
    start = threading.Barrier(4)

    def work(place: int, database: Database) -> list[UUID]:
        mine = [of_one[place] for of_one in runs]
        random.Random(seed + place).shuffle(mine)
        start.wait()
        done = claim(database, depot.world.clock, dict.fromkeys(mine), lease=LEASE, alone=False, tenant_concurrency=99)
        return [lease.schedule_id for lease in done.leases]

    with ThreadPoolExecutor(4) as threads:
        jobs = [threads.submit(work, place, connect()) for place in range(4)]
        passed = [schedule_id for job in jobs for schedule_id in job.result(timeout=60)]
    assert sorted(passed) == sorted(schedule.id for schedule in schedules)
