"""By hand: runs are delivered again or cancelled, whatever their schedule is doing, under the key they always had."""

from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from scheduler.errors import Conflict, NotFound
from scheduler.redelivery import Ended, Filter, Redelivery
from scheduler.runs import Reason, id_prefix
from scheduler.webhook.retry import Ladder, RetryPolicy

from tests.depot import Depot
from tests.http.receiver import Receiver, says
from tests.world import T0

REFUSES = says(b"HTTP/1.1 400 X\r\nX-No-Retry: 1\r\nContent-Length: 0\r\n\r\n")
FAILS = says(b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n")
DAY = {"since": T0 - timedelta(days=1), "until": T0 + timedelta(days=1)}


def by_hand(depot: Depot) -> Redelivery:
    return Redelivery(database=depot.world.database, clock=depot.world.clock)


def redeliver(depot: Depot, run_id: UUID) -> None:
    by_hand(depot).redeliver(depot.world.tenant_id, run_id)


def cancel(depot: Depot, run_id: UUID) -> None:
    by_hand(depot).cancel(depot.world.tenant_id, run_id)


def test_a_redelivered_run_keeps_its_key_and_body_and_counts_its_attempts_on(depot: Depot) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url(), payload=b'"same"')
        depot.deliver(run_id)
        depot.world.clock.move(hours=5)
        redeliver(depot, run_id)
        assert depot.dispatch().taken == 1
        depot.deliver(run_id)
    first, second = receiver.requests
    assert first.headers["x-idempotency-key"] == second.headers["x-idempotency-key"]
    assert (first.body, second.body) == (b'"same"', b'"same"')
    assert (first.headers["x-attempt"], second.headers["x-attempt"]) == ("1", "2")
    assert depot.run(run_id)["state"] == "succeeded"


def test_a_redelivered_runs_policy_begins_anew_however_old_it_is(depot: Depot) -> None:
    ladder = RetryPolicy(backoff=Ladder(delays=(timedelta(minutes=5),)), max_attempts=2, max_age=timedelta(minutes=30))
    with Receiver(script=REFUSES) as receiver:
        run_id = depot.one_run(receiver.url(), retry=ladder)
        depot.deliver(run_id)
        depot.world.clock.move(hours=20)
        receiver.script = FAILS
        redeliver(depot, run_id)
        depot.deliver(run_id)
        assert (depot.run(run_id)["state"], depot.run(run_id)["failures"]) == ("planned", 1)
        depot.world.clock.move(minutes=6)
        depot.deliver(run_id)
    assert depot.run(run_id)["reason"] == "exhausted"


@pytest.mark.parametrize("hold", ["paused", "disabled"])
def test_neither_pause_nor_disabling_holds_a_redelivered_run(depot: Depot, hold: str) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.deliver(run_id)
        depot.world.sql("update schedule set status = :status", status=hold)
        redeliver(depot, run_id)
        assert depot.dispatch().taken == 1
        depot.deliver(run_id)
    assert len(receiver.requests) == 2


def test_a_suspended_tenants_redelivered_run_is_held(depot: Depot) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.deliver(run_id)
        redeliver(depot, run_id)
        depot.world.sql("update tenant set status = 'suspended'")
        assert depot.dispatch().taken == 0
        depot.deliver(run_id)
    assert len(receiver.requests) == 1


def test_what_has_not_ended_and_what_a_deleted_schedule_left_are_not_redelivered(depot: Depot) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        with pytest.raises(Conflict, match="it is planned"):
            redeliver(depot, run_id)
        depot.deliver(run_id)
        depot.world.sql("update schedule set status = 'deleted'")
        with pytest.raises(Conflict, match="its schedule is deleted"):
            redeliver(depot, run_id)


def test_another_tenants_run_an_unknown_one_and_no_run_at_all_look_the_same(depot: Depot) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    unknown = UUID(id_prefix(T0.replace(microsecond=0)) + str(uuid4())[15:])
    for change in (by_hand(depot).redeliver, by_hand(depot).cancel):
        with pytest.raises(NotFound):
            change(uuid4(), run_id)
        with pytest.raises(NotFound):
            change(depot.world.tenant_id, unknown)
        with pytest.raises(NotFound):
            change(depot.world.tenant_id, uuid4())


def test_many_are_counted_first_and_then_redelivered_by_the_same_filter(depot: Depot) -> None:
    with Receiver(script=REFUSES) as receiver:
        failed = [depot.one_run(receiver.url(f"/{i}")) for i in range(3)]
        depot.deliver(*failed)
        receiver.script = FAILS
        waiting = depot.one_run(receiver.url("/waiting"))
        depot.deliver(waiting)
        wanted = Filter(state=Ended.FAILED, reason=Reason.REJECTED, **DAY)
        counted = by_hand(depot).redeliver_many(depot.world.tenant_id, wanted, dry_run=True)
        assert (counted.matched, counted.redelivered) == (3, 0)
        assert {depot.run(run_id)["state"] for run_id in failed} == {"failed"}
        done = by_hand(depot).redeliver_many(depot.world.tenant_id, wanted, dry_run=False)
    assert (done.matched, done.redelivered) == (3, 3)
    assert {depot.run(run_id)["state"] for run_id in failed} == {"planned"}
    assert depot.run(waiting)["state"] == "queued"


def test_a_filter_narrows_by_schedule_reason_and_time_and_never_beyond_its_tenant(depot: Depot) -> None:
    with Receiver(script=REFUSES) as receiver:
        mine, other = (depot.one_run(receiver.url(f"/{i}")) for i in range(2))
        depot.deliver(mine, other)
    [[schedule_id]] = depot.world.sql("select schedule_id from job_run where id = :id", id=mine)

    def count(tenant_id: UUID = depot.world.tenant_id, **words: object) -> int:
        wanted = Filter(**{"state": Ended.FAILED, **DAY, **words})  # type: ignore[arg-type]
        return by_hand(depot).redeliver_many(tenant_id, wanted, dry_run=True).matched

    assert count() == 2
    assert count(schedule_id=schedule_id) == 1
    assert count(reason=Reason.POISONED) == 0
    assert count(state=Ended.SUCCEEDED) == 0
    assert count(since=T0) == 0
    assert count(until=T0.replace(microsecond=0)) == 0
    assert count(tenant_id=uuid4()) == 0


def test_a_cancelled_run_is_not_posted(depot: Depot) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.dispatch()
        cancel(depot, run_id)
        assert depot.deliver(run_id) == []
        with pytest.raises(Conflict, match="it is cancelled already"):
            cancel(depot, run_id)
    assert (depot.run(run_id)["state"], depot.run(run_id)["reason"]) == ("cancelled", "by_hand")
    assert receiver.requests == []


def test_a_run_that_is_being_posted_can_not_be_called_back_but_one_whose_worker_is_lost_can(depot: Depot) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    depot.claim(run_id)
    with pytest.raises(Conflict, match="at this moment"):
        cancel(depot, run_id)
    depot.world.clock.move(seconds=31)
    cancel(depot, run_id)
    assert depot.run(run_id)["state"] == "cancelled"
