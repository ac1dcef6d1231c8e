"""A batch: three statements besides BEGIN and COMMIT, partial failures item by item, and no answer that makes it raise."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scheduler.breaker import BreakerPolicy
from scheduler.delivery import Message
from scheduler.store.connection import Database, Transaction

from tests.depot import Depot
from tests.http.receiver import Peer, Received, Receiver, says
from tests.world import Hands


class Asking(Hands):
    """Asks the database as the product's clock does, and then says what the hands say."""

    def __call__(self, transaction: Transaction) -> datetime:
        transaction.run("clock.read")
        return self.now


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


@pytest.mark.parametrize("answer", [b"HTTP/1.1 204 X\r\n\r\n", b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n"])
def test_a_batch_of_ten_is_three_statements(depot: Depot, statements: list[str], answer: bytes) -> None:
    """The clock, the claim, the record with its events; whatever the answers are."""
    with Receiver(script=says(answer)) as receiver:
        runs = [depot.one_run(receiver.url(f"/{i}")) for i in range(10)]
        messages = [
            Message(message_id=f"m{i}", receipt_handle=f"r{i}", body=str(run_id), receives=1)
            for i, run_id in enumerate(runs)
        ]
        depot.world.clock = Asking()
        courier = depot.courier()
        statements.clear()
        courier.deliver(messages)
    assert len(receiver.requests) == 10
    assert statements == ["clock.read", "delivery.claim", "delivery.record"]


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
