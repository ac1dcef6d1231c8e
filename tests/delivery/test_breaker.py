"""The breaker of a tenant's endpoint: it opens on failures, holds runs without an attempt, probes, closes and drains."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from scheduler.attempt import settle
from scheduler.breaker import BreakerPolicy
from scheduler.leases import Verdict, claim
from scheduler.recording import record
from scheduler.redelivery import Redelivery
from scheduler.releasing import release
from scheduler.schedules import AfterOutage
from scheduler.store.connection import Database
from scheduler.webhook.outcome import Failure, Stage, Timings
from scheduler.webhook.retry import Ladder, RetryPolicy

from tests.depot import Depot
from tests.http.receiver import Receiver, says
from tests.planning.test_races import wait_until, waiting_for_a_lock

FAILS = says(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")
MISSES = says(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n")
OK = says(b"HTTP/1.1 204 X\r\n\r\n")
PATIENT = RetryPolicy(backoff=Ladder(delays=(timedelta(hours=3),) * 9), max_attempts=10, max_age=timedelta(days=7))
BREAKER = BreakerPolicy(volume=4)
LEASE = timedelta(seconds=30)
DOWN = Failure(stage=Stage.CONNECT, detail="refused", timings=Timings(total=1))


@pytest.fixture
def depot(depot: Depot) -> Depot:
    """With a breaker that four attempts can open."""
    depot.breaker = BREAKER
    return depot


def endpoint(depot: Depot) -> tuple[str, int, int, int]:
    [[state, attempts, failures, trips]] = depot.world.sql("select state, attempts, failures, trips from endpoint")
    return state, attempts, failures, trips


def runs(depot: Depot, receiver: Receiver, count: int, **decided: object) -> list[UUID]:
    return [depot.one_run(receiver.url(f"/{i}"), **{"retry": PATIENT, **decided}) for i in range(count)]


def trip(depot: Depot, receiver: Receiver) -> None:
    """Opens the breaker."""
    receiver.script = FAILS
    depot.deliver(*runs(depot, receiver, 4))
    assert endpoint(depot)[0] == "open"


def test_it_opens_at_the_ratio_of_a_minimum_volume_and_says_so(depot: Depot) -> None:
    with Receiver(script=FAILS) as receiver:
        depot.deliver(*runs(depot, receiver, 3))
        assert endpoint(depot) == ("closed", 3, 3, 0)
        depot.deliver(*runs(depot, receiver, 1))
        assert endpoint(depot) == ("open", 0, 0, 1)
    assert depot.events().count("endpoint.opened") == 1


def test_a_few_failures_among_many_successes_do_not_open_it(depot: Depot) -> None:
    with Receiver(script=FAILS) as receiver:
        depot.deliver(*runs(depot, receiver, 2))
        receiver.script = OK
        depot.deliver(*runs(depot, receiver, 5))
        receiver.script = FAILS
        depot.deliver(*runs(depot, receiver, 2))
    assert endpoint(depot) == ("closed", 9, 4, 0)


def test_failures_of_an_earlier_window_are_forgotten(depot: Depot) -> None:
    with Receiver(script=FAILS) as receiver:
        depot.deliver(*runs(depot, receiver, 3))
        depot.world.clock.move(minutes=3)
        depot.deliver(*runs(depot, receiver, 3))
    assert endpoint(depot) == ("closed", 3, 3, 0)


def test_an_answer_that_blames_the_request_is_no_sign_of_trouble(depot: Depot) -> None:
    with Receiver(script=MISSES) as receiver:
        depot.deliver(*runs(depot, receiver, 8))
    assert endpoint(depot)[:3] == ("closed", 8, 0)


def test_an_endpoint_that_is_well_costs_no_row(depot: Depot) -> None:
    with Receiver() as receiver:
        depot.deliver(*runs(depot, receiver, 8))
    assert depot.world.sql("select count(*) from endpoint") == [[0]]


def test_while_it_is_open_runs_are_held_and_burn_no_attempt(depot: Depot) -> None:
    with Receiver() as receiver:
        trip(depot, receiver)
        held = runs(depot, receiver, 3)
        assert depot.deliver(*held) == []
        assert len(receiver.requests) == 4
        for run_id in held:
            run = depot.run(run_id)
            assert (run["state"], run["held_by"], run["attempt"], run["failures"]) == ("planned", "breaker", 0, 0)
        assert depot.dispatch().taken == 0


def test_another_tenants_and_another_ports_runs_go_on(depot: Depot) -> None:
    with Receiver() as receiver, Receiver() as neighbour:
        trip(depot, receiver)
        [run_id] = runs(depot, neighbour, 1)
        depot.deliver(run_id)
        assert depot.run(run_id)["state"] == "succeeded"
        receiver.script = OK
        [theirs] = runs(depot, receiver, 1)
        stranger = uuid4()
        depot.world.sql("insert into tenant select :id, name, status, created_at from tenant", id=stranger)
        depot.world.sql("update job_run set tenant_id = :t where id = :id", t=stranger, id=theirs)
        assert [lease.run_id for lease in depot.claim(theirs).leases] == [theirs]


def test_one_run_probes_it_and_a_good_answer_closes_it(depot: Depot) -> None:
    with Receiver() as receiver:
        trip(depot, receiver)
        receiver.script = OK
        depot.world.clock.move(seconds=31)
        waiting = runs(depot, receiver, 3)
        depot.deliver(*waiting)
        assert len(receiver.requests) == 5
        assert sorted(depot.run(run_id)["state"] for run_id in waiting) == ["planned", "planned", "succeeded"]
    assert endpoint(depot)[0] == "closed"
    assert depot.events()[-1] == "endpoint.closed" or "endpoint.closed" in depot.events()


def test_a_probe_that_fails_opens_it_again_for_twice_as_long(depot: Depot) -> None:
    with Receiver() as receiver:
        trip(depot, receiver)
        waits = []
        for _ in range(7):
            [[probe_at]] = depot.world.sql("select probe_at from endpoint")
            waits.append(round((probe_at - depot.world.clock.now).total_seconds()))
            depot.world.clock.set(probe_at)
            depot.deliver(*runs(depot, receiver, 2))
    assert waits == [30, 60, 120, 240, 480, 600, 600]
    assert len(receiver.requests) == 4 + 7
    assert depot.events().count("endpoint.opened") == 1


def test_a_probe_whose_worker_is_lost_is_followed_by_another(depot: Depot) -> None:
    with Receiver() as receiver:
        trip(depot, receiver)
        depot.world.clock.move(seconds=31)
        first, second = runs(depot, receiver, 2)
        assert len(depot.claim(first).leases) == 1
        assert endpoint(depot)[0] == "half_open"
        assert depot.claim(second).leases == ()
        depot.world.clock.move(seconds=31)
        assert len(depot.claim(second).leases) == 1


def test_two_workers_never_probe_at_once(depot: Depot, connect: Callable[[], Database]) -> None:
    """The second has seen an endpoint that nobody probes, and waits for the first one's commit before it looks again."""
    with Receiver() as receiver:
        trip(depot, receiver)
        depot.world.clock.move(seconds=31)
        one, two = runs(depot, receiver, 2)
    first, second = connect(), connect()
    with ThreadPoolExecutor(1) as threads:
        with first.joined():
            leases = claim(first, depot.world.clock, {one: None}, lease=LEASE, alone=False).leases
            other = threads.submit(claim, second, depot.world.clock, {two: None}, lease=LEASE, alone=False)
            wait_until(lambda: other.done() or waiting_for_a_lock(depot.world) == 1)
        barred = other.result(timeout=30)
    assert [lease.run_id for lease in leases] == [one]
    assert barred.verdicts == {two: Verdict.BARRED}


@pytest.mark.parametrize("others", [1, 4])
def test_workers_that_see_its_first_failures_at_once_open_it_once_and_it_stays_open(
    depot: Depot, connect: Callable[[], Database], others: int
) -> None:
    """Neither sees the other's row: the second waits for the first one's commit."""
    now = depot.world.clock.now
    leases = [
        depot.claim(*(depot.one_run("http://127.0.0.1:9/") for _ in range(count))).leases for count in (4, others)
    ]
    outcomes = [[settle(each, DOWN, started_at=now, now=now, receives=1) for each in batch] for batch in leases]
    words = {"now": now, "held_until": now, "breaker": BREAKER}
    first, second = connect(), connect()
    with ThreadPoolExecutor(1) as threads:
        with first.joined():
            record(first, outcomes[0], **words)  # type: ignore[arg-type]
            other = threads.submit(record, second, outcomes[1], **words)  # type: ignore[arg-type]
            wait_until(lambda: other.done() or waiting_for_a_lock(depot.world) == 1)
        other.result(timeout=30)
    assert endpoint(depot) == ("open", 0, 0, 1)
    assert depot.events().count("endpoint.opened") == 1


def test_what_a_breaker_holds_takes_no_place_among_its_tenants_deliveries(depot: Depot) -> None:
    with Receiver() as receiver:
        trip(depot, receiver)
        depot.claim(*runs(depot, receiver, 3))
    assert depot.world.sql("select in_flight from tenant_load") == [[0]]


def test_the_planner_sends_a_held_run_to_probe_it(depot: Depot) -> None:
    """Where nothing new becomes due, what is held must not wait for ever."""
    with Receiver() as receiver:
        trip(depot, receiver)
        oldest, younger = runs(depot, receiver, 1) + runs(depot, receiver, 1)
        depot.deliver(oldest, younger)
        assert release(depot.world.database, depot.world.clock).probes == 1
        assert depot.dispatch().taken == 1
        receiver.script = OK
        depot.world.clock.move(seconds=31)
        depot.deliver(*[each for each in (oldest, younger) if depot.run(each)["state"] == "queued"])
    assert endpoint(depot)[0] == "closed"


@pytest.mark.parametrize(
    ("choice", "sent"), [(AfterOutage.ALL, 3), (AfterOutage.LATEST, 1), (AfterOutage.NONE, 0)], ids=str
)
def test_once_it_is_closed_its_runs_drain_as_each_schedule_wants(depot: Depot, choice: AfterOutage, sent: int) -> None:
    with Receiver() as receiver:
        trip(depot, receiver)
        schedule = depot.schedule(receiver.url("/drain"), decided={"after_outage": choice})
        depot.world.sql("update endpoint set probe_at = :later", later=depot.world.clock.now + timedelta(minutes=9))
        depot.world.clock.set("09:03:30")
        depot.world.tick()
        held = depot.run_ids(schedule)[:3]
        depot.deliver(*held)
        receiver.script = OK
        depot.world.clock.set("09:09:30")
        depot.deliver(*runs(depot, receiver, 1))
        done = release(depot.world.database, depot.world.clock)
        states = [(depot.run(each)["state"], depot.run(each)["reason"]) for each in held]
    assert (done.drained, done.dropped) == (sent, 3 - sent)
    assert states == [("cancelled", "held")] * (3 - sent) + [("planned", None)] * sent
    assert depot.events().count("schedule.run.skipped") == 3 - sent


def test_it_drains_at_a_capped_rate(depot: Depot) -> None:
    with Receiver() as receiver:
        trip(depot, receiver)
        held = runs(depot, receiver, 10)
        depot.deliver(*held)
        depot.world.sql("update endpoint set state = 'closed', probe_at = null, probe_run_id = null")
        done = release(depot.world.database, depot.world.clock, drain_per_minute=6)
        assert done.drained == 6
        times = sorted(
            (depot.run(each)["next_attempt_at"] - depot.world.clock.now).total_seconds()
            for each in held
            if depot.run(each)["held_by"] is None
        )
        assert times == pytest.approx([0, 10, 20, 30, 40, 50])
        assert release(depot.world.database, depot.world.clock, drain_per_minute=6).drained == 4


def test_what_a_person_asked_for_is_held_too_but_never_dropped(depot: Depot) -> None:
    with Receiver() as receiver:
        [done] = runs(depot, receiver, 1, after_outage=AfterOutage.NONE)
        depot.deliver(done)
        trip(depot, receiver)
        Redelivery(database=depot.world.database, clock=depot.world.clock).redeliver(depot.world.tenant_id, done)
        depot.deliver(done)
        assert depot.run(done)["held_by"] == "breaker"
        depot.world.sql("update endpoint set state = 'closed', probe_at = null, probe_run_id = null")
        assert release(depot.world.database, depot.world.clock).drained == 1


def test_a_schedule_that_moves_to_another_endpoint_takes_its_held_runs_along(depot: Depot) -> None:
    with Receiver() as receiver, Receiver() as other:
        trip(depot, receiver)
        [held] = runs(depot, receiver, 1)
        depot.deliver(held)
        depot.world.sql(
            "update schedule set url = :url where id = (select schedule_id from job_run where id = :id)",
            url=other.url(),
            id=held,
        )
        assert release(depot.world.database, depot.world.clock).drained == 1
        depot.deliver(held)
    assert len(other.requests) == 1


def test_an_endpoint_that_fails_for_days_is_warned_of_half_way_and_then_its_schedules_are_disabled(
    depot: Depot,
) -> None:
    depot.breaker = BreakerPolicy(volume=1_000, failing_for=timedelta(hours=4))
    with Receiver(script=MISSES) as receiver:
        schedule = depot.schedule(receiver.url(), rate="1 hour")
        neighbour = depot.schedule(receiver.url("/neighbour"), cron="0 0 1 1 *")
        for _ in range(6):
            depot.world.clock.move(hours=1, seconds=10)
            depot.world.tick()
            due = depot.world.sql(
                "select id from job_run where schedule_id = :id and attempt = 0 and scheduled_for <= :now",
                id=schedule.id,
                now=depot.world.clock.now,
            )
            depot.deliver(*[row[0] for row in due])
    statuses = depot.world.sql(
        "select status from schedule where id = any(:ids) order by 1", ids=[schedule.id, neighbour.id]
    )
    assert statuses == [["disabled"], ["disabled"]]
    assert len(receiver.requests) == 5
    events = depot.events()
    assert events.count("endpoint.failing") == 1
    assert events.count("schedule.disabled") == 2
    assert depot.world.sql("select distinct changed_by from schedule_version where change = 'disabled'") == [
        ["outcome: endpoint_failing"]
    ]


def test_one_success_begins_the_days_anew(depot: Depot) -> None:
    depot.breaker = BreakerPolicy(volume=1_000, failing_for=timedelta(hours=4))
    with Receiver(script=MISSES) as receiver:
        for hour in range(8):
            receiver.script = OK if hour == 3 else MISSES
            depot.deliver(*runs(depot, receiver, 1))
            depot.world.clock.move(hours=1, seconds=10)
    assert "schedule.disabled" not in depot.events()
    assert depot.events().count("endpoint.failing") == 2
