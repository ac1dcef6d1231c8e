"""Every kind of answer ends as an Answer or a Failure with its stage, in bounded memory."""

import gzip
import socket
import struct
import threading
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from scheduler.http.client import Client
from scheduler.webhook.attempt_log import storable
from scheduler.webhook.outcome import Answer, Failure, Outcome, Stage, classify, stage_of

from tests.http.receiver import OK, Peer, Received, Receiver, post_to, says, says_and_hangs_up

type MakeReceiver = Callable[..., Receiver]


def post(client: Client, receiver: Receiver) -> Answer | Failure:
    return client.post(post_to(receiver.url()), deadline_seconds=5)


@pytest.mark.parametrize(
    ("wire", "status", "body"),
    [
        pytest.param(OK, 200, b"ok", id="with a length"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", id="without a body"),
        pytest.param(b"HTTP/1.1 500 \r\nContent-Length: 0\r\n\r\n", 500, b"", id="without a reason"),
        pytest.param(
            b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 202, b"ok", id="chunked"
        ),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, b"ok", id="after 100"),
        pytest.param(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK, 200, b"ok", id="after 103"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", id="never decoded"
        ),
    ],
)
def test_a_whole_answer_is_given_as_it_came(
    client: Client, receiver: MakeReceiver, wire: bytes, status: int, body: bytes
) -> None:
    result = post(client, receiver(says(wire)))
    assert isinstance(result, Answer), result
    assert (result.status, result.body_excerpt) == (status, body)


def test_an_answer_whose_body_ends_with_the_connection_is_whole(client: Client, receiver: MakeReceiver) -> None:
    result = post(client, receiver(says_and_hangs_up(b"HTTP/1.0 200 OK\r\n\r\nok")))
    assert isinstance(result, Answer)
    assert result.body_excerpt == b"ok"


@pytest.mark.parametrize("length", ["two", "-1"])
def test_a_length_that_is_none_costs_no_wait_for_the_end_of_the_connection(
    client: Client, receiver: MakeReceiver, length: str
) -> None:
    """The receiver keeps the connection open, and the attempt would else wait for all of its deadline."""
    result = post(client, receiver(says(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nok".encode())))
    assert isinstance(result, Failure)
    assert result.stage is Stage.READ


@pytest.mark.parametrize(
    "framing",
    [
        pytest.param(b"Content-Length: 2\r\n\r\nok", id="a length"),
        pytest.param(b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", id="the same length twice"),
        pytest.param(
            b"Content-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\nX: y\r\n\r\n", id="chunks"
        ),
    ],
)
@pytest.mark.parametrize(
    "before", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3]
)
def test_honest_framings_are_all_read_to_their_end(
    client: Client, receiver: MakeReceiver, before: bytes, framing: bytes
) -> None:
    listening = receiver(says(before + b"HTTP/1.1 200 OK\r\n" + framing))
    results = [post(client, listening) for _ in range(2)]
    assert [result.body_excerpt for result in results if isinstance(result, Answer)] == [b"ok", b"ok"]
    assert listening.connections == 1


def test_headers_keep_their_spelling_and_repetitions(client: Client, receiver: MakeReceiver) -> None:
    wire = b"HTTP/1.1 200 OK\r\nX-B: 1\r\nX-A: \xe9\r\nX-B: 2\r\nContent-Length: 0\r\n\r\n"
    result = post(client, receiver(says(wire)))
    assert isinstance(result, Answer)
    assert sorted(result.headers) == [("Content-Length", "0"), ("X-A", "\xe9"), ("X-B", "1"), ("X-B", "2")]


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", id="half a header line"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", id="no end of the head"),
        pytest.param(b"HTTP/1.1 200", id="half a status line"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", id="half a body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nok", id="a length below zero"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1_0\r\n\r\n0123456789", id="a length that only Python reads"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok", id="a length in words"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nok", id="a length without end"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nokokok", id="two lengths"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhalf", id="half a chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nok", id="a chunk below zero"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", id="no chunk size"),
        pytest.param(b"SSH-2.0-OpenSSH_9.9\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 099 Low\r\n\r\n", id="a status below 100"),
        pytest.param(b"HTTP/1.1 \x00\x00\x00\r\n\r\n", id="NUL for a status"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 101 + b"\r\n", id="too many headers"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", id="too long a header"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + (b"X: " + b"y" * 60_000 + b"\r\n") * 90 + b"\r\n", id="a head of 5 MB"),
    ],
)
def test_what_is_not_a_whole_answer_is_a_failure_to_read(client: Client, receiver: MakeReceiver, wire: bytes) -> None:
    result = post(client, receiver(says_and_hangs_up(wire)))
    assert isinstance(result, Failure), result
    assert result.stage is Stage.READ
    assert storable(result.detail.encode()) == result.detail


def test_a_reset_in_the_middle_of_a_200_is_no_success(client: Client, receiver: MakeReceiver) -> None:
    def script(peer: Peer, _: Received) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        peer.reset()

    result = post(client, receiver(script))
    assert isinstance(result, Failure)
    assert result.stage is Stage.READ
    assert classify(result) is Outcome.RETRY


def test_a_connection_reset_while_we_write_fails_at_write(client: Client) -> None:
    def resets(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        accepted.recv(1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted.close()

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        threads.submit(resets, listener)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        result = client.post(post_to(url, b"x" * 32_000_000), deadline_seconds=5)
    assert isinstance(result, Failure)
    assert result.stage is Stage.WRITE


def test_an_answer_given_before_the_request_was_read_counts(client: Client) -> None:
    """A receiver may refuse a large body at its first byte."""

    def refuses(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        accepted.recv(1)
        accepted.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        while accepted.recv(1 << 20):
            pass
        accepted.close()

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        threads.submit(refuses, listener)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        result = client.post(post_to(url, b"x" * 2_000_000), deadline_seconds=5)
    assert isinstance(result, Answer)
    assert result.status == 413


def test_an_answer_lost_after_the_receiver_worked_is_a_failure_and_the_next_attempt_tells_the_same_story(
    client: Client, receiver: MakeReceiver
) -> None:
    def script(peer: Peer, received: Received) -> None:
        if len(listening.requests) == 1:
            peer.reset()
        else:
            peer.send(OK)

    listening = receiver(script)
    first = client.post(post_to(listening.url(), b'{"n":1}'), deadline_seconds=5)
    second = client.post(post_to(listening.url(), b'{"n":1}'), deadline_seconds=5)
    assert isinstance(first, Failure)
    assert first.stage is Stage.READ
    assert isinstance(second, Answer)
    assert [each.body for each in listening.requests] == [b'{"n":1}', b'{"n":1}']


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failed_attempt_and_never_followed(client: Client, receiver: MakeReceiver, status: int) -> None:
    """ht-04: neither as a GET without its body nor with the signature sent to somebody else."""
    elsewhere = receiver()
    body = gzip.compress(b"\0" * 1_000_000)
    wire = (
        f"HTTP/1.1 {status} Moved\r\nLocation: {elsewhere.url()}\r\nContent-Encoding: gzip\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body
    result = post(client, receiver(says(wire)))
    assert isinstance(result, Answer)
    assert (result.status, stage_of(result), classify(result)) == (status, Stage.REDIRECT, Outcome.RETRY)
    assert elsewhere.requests == []


def test_a_gzip_bomb_stays_a_few_bytes(client: Client, receiver: MakeReceiver) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000, compresslevel=9)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    listening = receiver(says(head + bomb))
    tracemalloc.start()
    result = post(client, listening)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(result, Answer)
    assert result.body_excerpt == bomb[:1024]
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        pytest.param(b"\r\n", b"x" * 65536, id="until the connection ends"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65536 + b"\r\n", id="chunked"),
    ],
)
def test_an_endless_body_costs_its_sender_the_connection(
    client: Client, receiver: MakeReceiver, head: bytes, unit: bytes
) -> None:
    cut = threading.Event()

    def script(peer: Peer, _: Received) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\n" + head)
        try:
            while True:
                peer.send(unit)
        except OSError:
            cut.set()

    result = post(client, receiver(script))
    assert isinstance(result, Answer)
    assert result.body_excerpt == b"x" * 1024
    assert cut.wait(5)


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-Trailer: y\r\n" * 1000, id="trailers"
        ),
        pytest.param(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 1000, id="interim answers"),
    ],
)
def test_endless_framing_is_a_failure_long_before_the_deadline(
    client: Client, receiver: MakeReceiver, head: bytes, unit: bytes
) -> None:
    def script(peer: Peer, _: Received) -> None:
        peer.send(head)
        while True:
            peer.send(unit)

    result = client.post(post_to(receiver(script).url()), deadline_seconds=60)
    assert isinstance(result, Failure)
    assert result.stage is Stage.READ


def test_timings_are_whole_milliseconds_by_phase(client: Client, receiver: MakeReceiver) -> None:
    listening = receiver()
    first, second = post(client, listening), post(client, listening)
    assert None not in (first.timings.dns, first.timings.connect, first.timings.first_byte)
    assert first.timings.tls is None
    assert (second.timings.dns, second.timings.connect, second.timings.tls) == (None, None, None)
    assert second.timings.total >= (second.timings.first_byte or 0)
