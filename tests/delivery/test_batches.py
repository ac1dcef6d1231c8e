"""A batch: three statements besides BEGIN and COMMIT, partial failures item by item, and no answer that makes it raise."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scheduler.aws.bus import Bus
from scheduler.breaker import BreakerPolicy
from scheduler.delivery import Courier, Message
from scheduler.outbox import publish
from scheduler.schedules import OverlapPolicy
from scheduler.store.connection import Database, Transaction, _statement

from tests.depot import Depot, EventsClient
from tests.http.receiver import Peer, Received, Receiver, says
from tests.world import Hands


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The name of every statement from here on; BEGIN and COMMIT have none."""
    seen: list[str] = []
    execute = Transaction._execute

    def look(transaction: Transaction, name: str, parameters: dict[str, object]) -> Any:
        seen.append(name)
        return execute(transaction, name, parameters)

    monkeypatch.setattr(Transaction, "_execute", look)
    return seen


@pytest.fixture
def today(depot: Depot) -> Depot:
    """In this machine's own time, which is its database's, with a bus that takes what it is given."""
    depot.world.clock.set(datetime.now(UTC))
    with depot.world.database.transaction() as transaction:
        day = depot.world.clock.now.date()
        transaction.run("maintenance.make_partitions", first_day=day - timedelta(days=2), last_day=day)
    depot.events_client = EventsClient()
    return depot


def batch(*run_ids: UUID) -> list[Message]:
    return [
        Message(message_id=f"m{i}", receipt_handle=f"r{i}", body=str(run_id), receives=1)
        for i, run_id in enumerate(run_ids)
    ]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 204 X\r\n\r\n", b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n"])
def test_a_batch_of_ten_is_three_statements_from_its_clock_to_the_publication_of_its_events(
    today: Depot, statements: list[str], answer: bytes
) -> None:
    """All that the function does is in here, by the database's own clock; whatever the answers are."""
    with Receiver(script=says(answer)) as receiver:
        runs = [today.one_run(receiver.url(f"/{i}")) for i in range(10)]
        statements.clear()
        replace(today.courier(), clock=None).deliver(batch(*runs))
    assert len(receiver.requests) == 10
    assert sum(entry["DetailType"].startswith("schedule.run.") for entry in today.events_client.taken) == 10
    assert today.events() == []
    assert statements == ["delivery.claim", "delivery.record", "outbox.forget"]


def test_so_is_a_batch_that_lets_a_waiting_run_go(depot: Depot, statements: list[str]) -> None:
    depot.events_client = EventsClient()
    with Receiver() as receiver:
        schedule = depot.schedule(receiver.url(), decided={"overlap": OverlapPolicy.QUEUE})
        depot.world.clock.set("09:02:30")
        depot.world.tick()
        first, second = depot.run_ids(schedule)[:2]
        statements.clear()
        depot.deliver(first, second)
    assert statements == ["delivery.claim", "delivery.record", "outbox.forget"]
    assert [message.body for message in depot.runs.receive()] == [str(second)]


def test_what_a_batch_did_not_live_to_send_or_publish_is_the_planners(
    depot: Depot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dead between its commit and what follows it: the run that it woke is planned and free, its event is in the outbox."""
    monkeypatch.setattr(Courier, "_follow_up", lambda *_: None)
    with Receiver() as receiver:
        schedule = depot.schedule(receiver.url(), decided={"overlap": OverlapPolicy.QUEUE})
        depot.world.clock.set("09:02:30")
        depot.world.tick()
        first, second = depot.run_ids(schedule)[:2]
        depot.deliver(first, second)
    depot.dispatch()
    assert str(second) in [message.body for message in depot.runs.receive()]
    bus, later = Bus(EventsClient(), "bus"), Hands(now=depot.world.clock.now + timedelta(seconds=depot.remaining + 1))
    assert publish(depot.world.database, depot.world.clock, bus, more_time=lambda: True) == 0, "still its recorder's"
    assert publish(depot.world.database, later, bus, more_time=lambda: True) == 1


@pytest.mark.parametrize("block", ["delivery.claim", "delivery.record", "dispatch.mark_queued"])
def test_no_statement_of_a_batch_plans_for_days_that_it_does_not_touch(
    depot: Depot, monkeypatch: pytest.MonkeyPatch, block: str
) -> None:
    """A stack has ninety days of partitions: planning for them all takes ten times as long as the statement itself."""
    plans: list[str] = []
    execute = Transaction._execute

    def explain(transaction: Transaction, name: str, parameters: dict[str, object]) -> Any:
        if name == block:
            text, in_order = _statement(name)
            done = transaction._connection.execute_unnamed(f"explain {text}", in_order(parameters))
            plans.append("\n".join(row[0] for row in done.rows))
        return execute(transaction, name, parameters)

    monkeypatch.setattr(Transaction, "_execute", explain)
    with Receiver() as receiver:
        depot.one_run(receiver.url())
        depot.dispatch()
        depot.courier().deliver(depot.runs.receive())
    assert plans
    assert set(re.findall(r"(?:job_run|attempt)_(\d{8})", plans[0])) == {f"{depot.world.clock.now:%Y%m%d}"}


# A database that refuses the record of some runs stands for what is wrong with one record alone.
@pytest.mark.parametrize(
    ("bad", "kept"),
    [
        pytest.param("b", ["b"], id="sq-01: a part of the batch fails"),
        pytest.param("ab", ["a", "b"], id="sq-02: all of it fails, which is no error of the function's"),
    ],
)
def test_the_messages_that_failed_and_only_they_are_reported(depot: Depot, bad: str, kept: list[str]) -> None:
    depot.world.sql("create table refused (run_id uuid)")
    depot.world.sql(
        "create function refuse() returns trigger language plpgsql as $$ begin"
        " if exists (select 1 from refused where run_id = new.run_id) then raise exception 'no'; end if;"
        " return new; end $$"
    )
    depot.world.sql("create trigger refuse before insert on attempt for each row execute function refuse()")
    with Receiver() as receiver:
        names = {"a": depot.one_run(receiver.url("/a")), "b": depot.one_run(receiver.url("/b"))}
        if len(bad) == 1:
            names["c"] = depot.one_run(receiver.url("/c"))
        for name in bad:
            depot.world.sql("insert into refused values (:id)", id=names[name])
        messages = [
            Message(message_id=name, receipt_handle=name, body=str(run_id), receives=1)
            for name, run_id in names.items()
        ]
        assert depot.courier().deliver(messages) == kept


def test_a_receipt_handle_of_an_earlier_receive_decides_nothing(depot: Depot) -> None:
    """sq-07: whatever a delete under a stale handle does to the message, the run is the database's to end."""
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        depot.dispatch()
        [first] = depot.runs.receive()
        depot.runs.client.change_message_visibility(
            QueueUrl=depot.runs.url, ReceiptHandle=first.receipt_handle, VisibilityTimeout=0
        )
        [second] = depot.runs.receive()
        depot.runs.settle([first], [])
        assert depot.run(run_id)["state"] == "queued"
        assert depot.courier().deliver([second]) == []
    assert depot.run(run_id)["state"] == "succeeded"


def test_a_wait_counts_from_the_end_of_the_attempt(depot: Depot, monkeypatch: pytest.MonkeyPatch) -> None:
    """sq-09: the visibility is changed after the POST; set before it, a slow answer would have used it up."""
    order: list[str] = []
    change = depot.runs.client.change_message_visibility_batch

    def look(**words: Any) -> Any:
        order.append("put off")
        return change(**words)

    def answer(peer: Peer, _: Received) -> None:
        order.append("posted")
        peer.send(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n")

    monkeypatch.setattr(depot.runs.client, "change_message_visibility_batch", look)
    with Receiver(script=answer) as receiver:
        depot.one_run(receiver.url())
        depot.dispatch()
        depot.courier().deliver(depot.runs.receive())
    assert order == ["posted", "put off"]


def test_a_claim_is_written_in_the_transaction_that_locks_the_run(
    depot: Depot, connect: Callable[[], Database]
) -> None:
    """le-02: SKIP LOCKED keeps others out only until COMMIT; what keeps them out afterwards is the row itself."""
    run_id = depot.one_run("http://127.0.0.1:9/")
    assert len(depot.claim(run_id).leases) == 1
    second = depot.courier(connect())
    message = Message(message_id="m", receipt_handle="r", body=str(run_id), receives=1)
    assert second.deliver([message]) == ["m"]
    assert depot.run(run_id)["attempt"] == 1


_LINES = st.sampled_from(
    [b"HTTP/1.1 200 OK", b"HTTP/1.1 503 \xff\x00", b"HTTP/1.0 410", b"HTTP/2 200", b"", b"\x00\x01"]
)
_HEADERS = st.lists(
    st.sampled_from(
        [
            b"Content-Length: 5",
            b"Content-Length: -1",
            b"Transfer-Encoding: chunked",
            b"Retry-After: 99999999999999999999",
            b"Retry-After: Fri, 31 Dec 9999 23:59:59 GMT",
            b"Retry-After: \xff",
            b"X-No-Retry: true",
            b"Location: http://169.254.169.254/",
            b"Set-Cookie: \x00\xed\xa0\x80",
            b"no colon",
            b": empty",
            b"Content-Encoding: gzip",
        ]
    )
    | st.binary(max_size=40),
    max_size=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(line=_LINES | st.binary(max_size=30), headers=_HEADERS, body=st.binary(max_size=60))
def test_no_answer_makes_a_delivery_raise_or_leaves_its_run_without_an_outcome(
    depot: Depot, line: bytes, headers: list[bytes], body: bytes
) -> None:
    depot.breaker = BreakerPolicy(volume=1_000_000)

    def answer(peer: Peer, _: Received) -> None:
        peer.send(b"\r\n".join([line, *headers, b"", body]))
        peer.hang_up()

    with Receiver(script=answer) as receiver:
        run_id = depot.one_run(receiver.url())
        depot.deliver(run_id)
    run = depot.run(run_id)
    assert run["state"] in ("queued", "planned", "succeeded", "failed")
    assert run["unrecorded"] == 0
    [[logged]] = depot.world.sql("select count(*) from attempt where run_id = :id", id=run_id)
    assert logged == 1


@pytest.mark.parametrize(
    "body", ["", "\x00", "\ud800", "1" * 70_000, str(uuid4()), "{}", "00000000-0000-7000-8000-000000000000"]
)
def test_no_message_makes_a_delivery_raise(depot: Depot, body: str) -> None:
    message = Message(message_id="m", receipt_handle="r", body=body, receives=1)
    assert depot.courier().deliver([message]) == []
