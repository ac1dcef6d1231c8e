"""Delivery: what becomes of runs and of their messages, over the real database, real sockets and moto's queue."""

import json
import threading
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from scheduler.attempt import settle
from scheduler.aws.keys import Keys
from scheduler.delivery import Message
from scheduler.lease_times import MARGIN_SECONDS
from scheduler.recording import Settlement, record
from scheduler.runs import id_prefix
from scheduler.store.connection import Database
from scheduler.webhook.outcome import Answer, Failure, Timings
from scheduler.webhook.request import OutboundRequest, idempotency_key
from standardwebhooks.webhooks import Webhook

from tests.depot import SECRET, Depot
from tests.http.receiver import Received, Receiver, says
from tests.world import T0

FAILS = says(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")
OK_ANSWER = Answer(status=204, headers=(), body_excerpt=b"", timings=Timings(total=1))


def cut_connections(depot: Depot) -> None:
    """Ends every session of the product's in this database."""
    depot.world.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'carillon' "
        "and datname = current_database()"
    )


def record_now(depot: Depot, settlement: Settlement) -> frozenset[UUID]:
    now = depot.world.clock.now
    return record(depot.world.database, [settlement], now=now, held_until=now).changed


def verify(received: Received) -> None:
    """As an independent library sees it; the signed time is the test's, not this machine's."""
    headers = {name: value for name, value in received.headers.items() if name.startswith("webhook-")}
    expected = Webhook(SECRET).sign(
        headers["webhook-id"], T0.fromtimestamp(int(headers["webhook-timestamp"]), T0.tzinfo), received.body.decode()
    )
    assert expected in headers["webhook-signature"].split(" ")
    assert headers["webhook-signature"] == received.headers["x-signature"]


def test_a_2xx_ends_the_run_and_its_message(depot: Depot) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        assert depot.deliver(run_id) == []
    assert depot.run(run_id)["state"] == "succeeded"
    assert depot.events() == ["schedule.run.succeeded"]
    [received] = receiver.requests
    verify(received)
    scheduled_for = T0.replace(microsecond=0)
    schedule_id = UUID(received.headers["x-schedule-id"])
    assert received.headers["x-idempotency-key"] == idempotency_key(schedule_id, scheduled_for)
    assert received.headers["x-run-id"] == str(run_id)
    assert received.headers["x-attempt"] == "1"
    assert received.headers["x-scheduled-for"] == "2026-12-01T09:00:00Z"


def test_each_attempt_is_logged_with_what_the_receiver_said(depot: Depot) -> None:
    with Receiver(
        script=says(b"HTTP/1.1 500 x\r\nSet-Cookie: s\r\nContent-Length: 5\r\n\r\nok\x00\xff\xfe")
    ) as receiver:
        run_id = depot.one_run(receiver.url())
        depot.deliver(run_id)
    [[outcome, stage, status, headers, body]] = depot.world.sql(
        "select outcome, stage, status, response_headers, response_body from attempt where run_id = :id", id=run_id
    )
    assert (outcome, stage, status) == ("retrying", "status", 500)
    assert ["Set-Cookie", "[redacted]"] in headers
    assert body == "ok\ufffd\ufffd\ufffd"


def test_a_failed_attempt_waits_in_the_queue_while_the_wait_is_short_and_the_message_young(depot: Depot) -> None:
    with Receiver(script=FAILS) as receiver:
        run_id = depot.one_run(receiver.url())
        assert depot.deliver(run_id) == [str(run_id)]
    run = depot.run(run_id)
    assert (run["state"], run["failures"], run["unrecorded"]) == ("queued", 1, 0)
    assert T0 < run["next_attempt_at"] <= T0 + timedelta(minutes=2)


def test_a_failed_attempt_of_an_old_message_is_parked_for_the_planner(depot: Depot) -> None:
    with Receiver(script=FAILS) as receiver:
        run_id = depot.one_run(receiver.url())
        assert depot.deliver(run_id, receives=3) == []
    assert depot.run(run_id)["state"] == "planned"


def test_receives_are_not_attempts(depot: Depot) -> None:
    """sq-13: a message that a throttled function received three times has had no attempt."""
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.deliver(run_id, receives=4)
    assert receiver.requests[0].headers["x-attempt"] == "1"


def test_attempts_share_key_and_body_but_not_attempt_number(depot: Depot) -> None:
    with Receiver(script=FAILS) as receiver:
        run_id = depot.one_run(receiver.url(), payload=b'{"n":1}')
        for _ in range(3):
            depot.deliver(run_id)
            depot.world.clock.set(depot.run(run_id)["next_attempt_at"])
    assert {r.headers["x-idempotency-key"] for r in receiver.requests} == {receiver.requests[0].headers["webhook-id"]}
    assert [r.headers["x-attempt"] for r in receiver.requests] == ["1", "2", "3"]
    assert {r.body for r in receiver.requests} == {b'{"n":1}'}


def test_the_policy_ends_in_a_recorded_failure(depot: Depot) -> None:
    with Receiver(script=FAILS) as receiver:
        run_id = depot.one_run(receiver.url())
        while depot.run(run_id)["state"] != "failed":
            depot.deliver(run_id)
            depot.world.clock.set(max(depot.run(run_id)["next_attempt_at"], depot.world.clock.now))
    run = depot.run(run_id)
    assert (run["reason"], run["failures"]) == ("exhausted", len(receiver.requests))
    assert depot.events()[-1] == "schedule.run.failed"


def test_a_settled_run_is_not_posted_again(depot: Depot) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.deliver(run_id)
        assert depot.deliver(run_id) == []
    assert len(receiver.requests) == 1


def test_a_run_under_a_live_lease_is_left_to_its_worker(depot: Depot) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        assert depot.claim(run_id).leases
        assert depot.deliver(run_id) == [str(run_id)]
    assert receiver.requests == []


def test_a_stale_workers_result_changes_nothing_but_is_logged(depot: Depot) -> None:
    with Receiver(script=FAILS) as receiver:
        run_id = depot.one_run(receiver.url())
        [stale] = depot.claim(run_id).leases
        depot.world.clock.move(seconds=61)
        depot.deliver(run_id)
    late = settle(stale, OK_ANSWER, started_at=T0, now=T0, receives=1)
    assert record_now(depot, late) == set()
    assert depot.run(run_id)["state"] == "queued"
    assert depot.world.sql("select attempt, outcome from attempt order by 1") == [[1, "succeeded"], [2, "retrying"]]


def test_a_result_after_the_lease_counts_while_nobody_else_has_claimed_the_run(depot: Depot) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    [lease] = depot.claim(run_id).leases
    depot.world.clock.move(seconds=61)
    assert depot.sweep().taken == 1
    late = settle(lease, OK_ANSWER, started_at=T0, now=T0, receives=1)
    assert record_now(depot, late) == {run_id}
    assert depot.run(run_id)["state"] == "succeeded"


def test_an_outcome_whose_commit_was_carried_out_but_not_answered_counts_once(depot: Depot) -> None:
    """The worker that heard nothing records it again: of a policy's attempts it burns one, and one event tells of it."""
    run_id = depot.one_run("http://127.0.0.1:9/")
    [lease] = depot.claim(run_id).leases
    failed = settle(lease, replace(OK_ANSWER, status=503), started_at=T0, now=T0, receives=1)
    assert record_now(depot, failed) == {run_id}
    assert record_now(depot, failed) == set()
    assert depot.run(run_id)["failures"] == 1
    assert depot.events() == ["schedule.run.retrying"]


def test_the_database_refuses_a_second_claim_in_the_same_instant(depot: Depot) -> None:
    """le-03: a time as a fencing token collides within a millisecond; a count does not."""
    run_id = depot.one_run("http://127.0.0.1:9/")
    depot.remaining = 0.0
    first, second = depot.claim(run_id), depot.claim(run_id, alone=True)
    assert [claim.leases[0].attempt for claim in (first, second)] == [1, 2]


def test_a_run_that_killed_its_worker_goes_alone_after_its_neighbours_are_recorded(depot: Depot) -> None:
    states: list[str] = []
    with Receiver() as receiver:
        neighbour = depot.one_run(receiver.url("/neighbour"))
        depot.world.clock.move(seconds=1)

        def look(peer: object, received: Received) -> None:
            if received.headers["x-run-id"] == str(suspect):
                states.append(depot.run(neighbour)["state"])
            says(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(peer, received)  # type: ignore[arg-type]

        receiver.script = look
        suspect = depot.one_run(receiver.url("/suspect"))
        depot.claim(suspect)
        depot.world.clock.move(seconds=61)
        assert depot.deliver(suspect, neighbour) == []
    assert states == ["succeeded"]
    assert depot.run(suspect)["state"] == "succeeded"


def test_five_claims_in_a_row_without_an_outcome_and_only_they_poison_a_run(depot: Depot) -> None:
    with Receiver(script=FAILS) as receiver:
        run_id = depot.one_run(receiver.url())
        for _ in range(4):
            depot.claim(run_id, alone=True)
            depot.world.clock.move(seconds=61)
        depot.deliver(run_id)
        assert depot.run(run_id)["unrecorded"] == 0
        depot.world.clock.move(minutes=5)
        for _ in range(5):
            assert depot.claim(run_id, alone=True).leases
            depot.world.clock.move(seconds=61)
        assert depot.deliver(run_id) == []
    run = depot.run(run_id)
    assert (run["state"], run["reason"], run["failures"]) == ("failed", "poisoned", 1)
    assert depot.events()[-1] == "schedule.run.failed"


def test_keys_that_stay_away_hold_a_run_no_longer_than_its_policy_lasts(depot: Depot) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    depot.world.sql("update signing_secret set ciphertext = 'nobodys'")
    depot.world.clock.move(hours=23, minutes=59)
    depot.deliver(run_id)
    assert depot.run(run_id)["state"] == "queued"
    depot.world.clock.move(minutes=1)
    assert depot.deliver(run_id) == []
    assert (depot.run(run_id)["state"], depot.run(run_id)["reason"]) == ("failed", "expired")
    assert depot.events() == ["schedule.run.failed"]
    assert depot.world.sql("select count(*) from attempt") == [[0]], "nothing was ever sent"


@pytest.mark.parametrize("stored", ["none", "not a secret"])
def test_a_tenant_whose_secret_is_missing_or_unreadable_does_not_take_its_neighbours(
    depot: Depot, keys: Keys, stored: str
) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    if stored == "none":
        depot.world.sql("delete from signing_secret")
    else:
        junk = keys.encrypt(depot.world.tenant_id, "whsec_no")
        depot.world.sql("update signing_secret set ciphertext = :c", c=junk)
    assert depot.deliver(run_id) == [str(run_id)]
    run = depot.run(run_id)
    assert (run["state"], run["failures"], run["unrecorded"]) == ("queued", 0, 0)


def test_keys_that_are_away_burn_neither_an_attempt_nor_a_claim(depot: Depot, keys: Keys) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.world.sql("update signing_secret set ciphertext = 'junk'")
        for _ in range(6):
            depot.deliver(run_id)
            depot.world.clock.move(seconds=31)
        run = depot.run(run_id)
        assert (run["state"], run["failures"], run["unrecorded"]) == ("queued", 0, 0)
        depot.world.sql("update signing_secret set ciphertext = :c", c=keys.encrypt(depot.world.tenant_id, SECRET))
        depot.deliver(run_id)
    assert depot.run(run_id)["state"] == "succeeded"


@pytest.mark.parametrize(("left", "posted"), [(7.5, True), (5.5, False)])
def test_keys_that_are_slow_take_their_time_from_the_post_and_burn_no_attempt(
    depot: Depot, monkeypatch: pytest.MonkeyPatch, left: float, posted: bool
) -> None:
    """A deadline from before they were asked would outlive the invocation, and leave all of its batch without an outcome."""
    decrypt, post, deadlines = depot.keys.decrypt, depot.client.post, list[float]()

    def slowly(tenant_id: UUID, ciphertext: bytes) -> str:
        depot.remaining = left
        return decrypt(tenant_id, ciphertext)

    def watched(request: OutboundRequest, *, deadline_seconds: float) -> Answer | Failure:
        deadlines.append(deadline_seconds)
        return post(request, deadline_seconds=deadline_seconds)

    monkeypatch.setattr(depot.keys, "decrypt", slowly)
    monkeypatch.setattr(depot.client, "post", watched)
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.deliver(run_id)
    run = depot.run(run_id)
    assert (run["state"], run["failures"], run["unrecorded"]) == ("succeeded" if posted else "queued", 0, 0)
    assert deadlines == ([left - MARGIN_SECONDS] if posted else [])


def test_a_pause_holds_what_is_due_and_a_resume_sends_it(depot: Depot) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        [[schedule_id]] = depot.world.sql("select schedule_id from job_run")
        world = depot.world
        world.scheduling.pause(world.tenant_id, schedule_id, changed_by="test")
        assert depot.deliver(run_id) == []
        assert depot.dispatch().taken == 0
        assert depot.run(run_id)["state"] == "planned"
        world.scheduling.resume(world.tenant_id, schedule_id, changed_by="test")
        assert depot.dispatch().taken == 1
        depot.deliver(run_id)
    assert depot.run(run_id)["state"] == "succeeded"


def test_a_delete_cancels_what_is_due(depot: Depot) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    [[schedule_id]] = depot.world.sql("select schedule_id from job_run")
    depot.world.scheduling.delete(depot.world.tenant_id, schedule_id, changed_by="test")
    assert (depot.run(run_id)["state"], depot.run(run_id)["reason"]) == ("cancelled", "deleted")
    assert depot.deliver(run_id) == []


def test_the_body_is_that_of_the_first_claim_and_the_address_that_of_each_attempt(depot: Depot) -> None:
    world = depot.world
    with Receiver(script=FAILS) as first, Receiver() as second:
        run_id = depot.one_run(first.url(), payload=b'"old"')
        depot.deliver(run_id)
        [[schedule_id]] = world.sql("select schedule_id from job_run")
        old = world.scheduling.get(world.tenant_id, schedule_id).definition

        def moved(_: object) -> object:
            return type(old)(name=None, timing=old.timing, url=second.url(), headers=(), payload=b'"new"')

        world.scheduling.edit(world.tenant_id, schedule_id, moved, changed_by="test")  # type: ignore[arg-type]
        world.clock.set(depot.run(run_id)["next_attempt_at"])
        depot.deliver(run_id)
    assert [r.body for r in (*first.requests, *second.requests)] == [b'"old"', b'"old"']


@pytest.mark.parametrize(
    ("minutes", "receives", "state", "kept"), [(1, 1, "queued", 1), (1, 3, "planned", 0), (9, 1, "planned", 0)]
)
def test_a_message_that_comes_early_waits_in_the_queue_or_is_parked(
    depot: Depot, minutes: int, receives: int, state: str, kept: int
) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    depot.dispatch()
    later = T0 + timedelta(minutes=minutes)
    depot.world.sql("update job_run set next_attempt_at = :later", later=later)
    assert len(depot.deliver(run_id, receives=receives)) == kept
    assert depot.run(run_id)["state"] == state
    assert depot.run(run_id)["attempt"] == 0


def test_without_time_for_a_whole_attempt_nothing_is_claimed_and_all_is_kept(depot: Depot) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    depot.remaining = 10.0
    assert depot.deliver(run_id) == [str(run_id)]
    assert depot.run(run_id)["attempt"] == 0


def test_messages_that_name_no_run_are_dropped(depot: Depot) -> None:
    unknown = UUID(id_prefix(T0.replace(microsecond=0)) + str(uuid4())[15:])
    assert depot.deliver("nonsense", str(uuid4()), unknown) == []


def test_two_copies_of_a_run_in_one_batch_are_one_post(depot: Depot) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.deliver(run_id, run_id)
    assert len(receiver.requests) == 1


def test_the_posts_of_a_batch_go_side_by_side(depot: Depot) -> None:
    together = threading.Barrier(10, timeout=10)

    def meet(peer: object, received: Received) -> None:
        together.wait()
        says(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(peer, received)  # type: ignore[arg-type]

    with Receiver(script=meet) as receiver:
        run_ids = [depot.one_run(receiver.url(f"/{i}")) for i in range(10)]
        assert depot.deliver(*run_ids) == []
    assert len(receiver.requests) == 10


def test_a_row_that_can_not_be_stored_is_kept_and_its_neighbours_are_recorded(depot: Depot) -> None:
    with Receiver() as receiver:
        stored = depot.one_run(receiver.url())
        depot.world.clock.set(T0 + timedelta(days=1))
        refused = depot.one_run(receiver.url())
        depot.world.sql("drop table attempt_20261202")
        assert depot.deliver(stored, refused) == [str(refused)]
    assert depot.run(stored)["state"] == "succeeded"
    assert depot.run(refused)["state"] == "delivering"


def test_a_database_that_is_away_keeps_every_message(depot: Depot) -> None:
    run_id = depot.one_run("http://127.0.0.1:9/")
    away = Database(lambda: replace(depot.world.login, database="no_such_database"))
    message = Message(message_id="m", receipt_handle="r", body=str(run_id), receives=1)
    assert depot.courier(away).deliver([message]) == ["m"]
    assert depot.run(run_id)["attempt"] == 0


def test_a_connection_lost_during_the_posts_loses_no_outcome(depot: Depot) -> None:
    def cut(peer: object, received: Received) -> None:
        cut_connections(depot)
        says(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")(peer, received)  # type: ignore[arg-type]

    with Receiver(script=cut) as receiver:
        run_id = depot.one_run(receiver.url())
        assert depot.deliver(run_id) == []
    assert depot.run(run_id)["state"] == "succeeded"


def test_a_connection_lost_inside_the_record_is_made_up_for_by_a_second_try(depot: Depot) -> None:
    """The server ends the session in the middle of the statement, the first time: a sequence is not rolled back."""
    depot.world.sql("create sequence records")
    depot.world.sql(
        "create function cut() returns trigger language plpgsql as $$ begin"
        " if nextval('records') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if; return new; end $$"
    )
    depot.world.sql("create trigger cut before insert on attempt for each row execute function cut()")
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        assert depot.deliver(run_id) == []
    assert depot.world.sql("select last_value from records") == [[2]]
    assert depot.run(run_id)["state"] == "succeeded"
    assert len(receiver.requests) == 1


def test_the_default_body_names_the_run_and_no_attempt(depot: Depot) -> None:
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.deliver(run_id)
    body = json.loads(receiver.requests[0].body)
    assert body["run_id"] == str(run_id)
    assert "attempt" not in body
