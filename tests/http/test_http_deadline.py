"""Nothing a receiver, a resolver or a network does makes an attempt outlive its total deadline."""

import socket
import threading
import time
from collections.abc import Callable

import pytest
from scheduler.http.client import Client
from scheduler.http.dialler import Dialler
from scheduler.http.exchange import Exchange
from scheduler.http.resolver import Lookups
from scheduler.webhook.outcome import Failure, Stage

from tests.http.receiver import LOCAL, Peer, Received, Receiver, loopback, post_to

DEADLINE = 0.4
SLACK = 1.0  # every script below would take many times as long

type MakeReceiver = Callable[..., Receiver]


def timed_out(client: Client, url: str, body: bytes = b"{}") -> Failure:
    """Posts, and checks that the attempt ended at its deadline and says so."""
    begun = time.monotonic()
    result = client.post(post_to(url, body), deadline_seconds=DEADLINE)
    took = time.monotonic() - begun
    assert isinstance(result, Failure), result
    assert result.stage is Stage.TIMEOUT, result
    assert DEADLINE - 0.01 <= took <= DEADLINE + SLACK
    return result


def drips_body(peer: Peer, _: Received) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    peer.drip(b"x" * 1000)


def drips_headers(peer: Peer, _: Received) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\n")
    peer.drip(b"X-Drip: 1\r\n" * 90)


def drips_status_line(peer: Peer, _: Received) -> None:
    peer.drip(b"HTTP/1.1 200 " + b"O" * 1000)


def drips_chunks(peer: Peer, _: Received) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    peer.drip(b"1\r\nx\r\n" * 1000)


def drips_interim_answers(peer: Peer, _: Received) -> None:
    peer.drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def stays_silent(peer: Peer, _: Received) -> None:
    peer.stay_silent()


def stays_silent_in_the_body(peer: Peer, _: Received) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    peer.stay_silent()


@pytest.mark.parametrize(
    "script",
    [
        drips_body,
        drips_headers,
        drips_status_line,
        drips_chunks,
        drips_interim_answers,
        stays_silent,
        stays_silent_in_the_body,
    ],
)
def test_a_receiver_can_not_hold_an_attempt_beyond_its_deadline(
    client: Client, receiver: MakeReceiver, script: Callable[[Peer, Received], None]
) -> None:
    timed_out(client, receiver(script).url())


def sends_eight_bytes(peer: Peer, _: Received) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n")
    peer.drip(b"x" * 8, every=0.5)


def sends_six_header_lines(peer: Peer, _: Received) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\n")
    for _line in range(6):
        if not peer.stopped.wait(0.5):
            peer.send(b"X-Slow: 1\r\n")
    peer.send(b"\r\n")


@pytest.mark.parametrize(
    "script", [pytest.param(sends_eight_bytes, id="ht-01"), pytest.param(sends_six_header_lines, id="ht-02")]
)
def test_two_seconds_are_two_seconds_however_often_a_byte_comes(
    client: Client, receiver: MakeReceiver, script: Callable[[Peer, Received], None]
) -> None:
    """Every half second something arrives, so that no time-out of a single read would ever end it."""
    listening = receiver(script)
    # A busy machine may come late once.
    took = [_seconds(client, listening.url(), deadline=2) for _ in range(2)]
    assert 2 <= min(took) <= 2.2


def _seconds(client: Client, url: str, *, deadline: float) -> float:
    begun = time.monotonic()
    result = client.post(post_to(url), deadline_seconds=deadline)
    took = time.monotonic() - begun
    assert isinstance(result, Failure), result
    assert result.stage is Stage.TIMEOUT
    return took


def test_a_receiver_that_does_not_read_the_request_is_cut_at_the_deadline(client: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        timed_out(client, f"http://127.0.0.1:{listener.getsockname()[1]}/", body=b"x" * 32_000_000)


def test_a_peer_that_never_answers_the_tls_hello_is_cut_at_the_deadline(client: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        timed_out(client, f"https://hook.test:{listener.getsockname()[1]}/")


def test_a_resolver_that_hangs_does_not_outlive_the_deadline() -> None:
    released = threading.Event()

    def hangs(host: str, port: int) -> tuple[str, ...]:
        released.wait(10)
        return ("127.0.0.1",)

    client = Client(LOCAL, resolver=hangs)
    result = timed_out(client, "http://hook.test:1/")
    assert result.timings.dns is None
    released.set()


def test_hanging_look_ups_are_bounded_and_further_ones_wait_inside_their_deadline() -> None:
    released, begun = threading.Event(), []

    def hangs(host: str, port: int) -> tuple[str, ...]:
        begun.append(host)
        released.wait(10)
        return ("127.0.0.1",)

    lookups = Lookups(hangs, most=2)
    for number in range(4):
        with pytest.raises(TimeoutError):
            lookups.resolve(f"{number}.test", 443, 0.02)
    assert begun == ["0.test", "1.test"]
    released.set()
    assert lookups.resolve("last.test", 443, 5) == ("127.0.0.1",)


def an_exchange(dialler: Dialler, seconds: float = 5) -> Exchange:
    now = time.monotonic()
    return Exchange(started=now, ends=now + seconds, dial=dialler.open)


def test_a_look_up_longer_than_its_phase_fails_as_dns_before_the_deadline() -> None:
    released = threading.Event()
    dialler = Dialler(LOCAL, Lookups(lambda host, port: ("127.0.0.1",) * released.wait(10)), phase_seconds=0.05)
    exchange = an_exchange(dialler)
    with pytest.raises(TimeoutError):
        dialler.open("hook.test", 443, exchange)
    assert exchange.failed_at() is Stage.DNS
    released.set()


def test_a_connection_longer_than_its_phase_fails_as_connect_before_the_deadline() -> None:
    # A full accept queue drops the next SYN: the nearest thing to a black hole that loopback has.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(address)
        dialler = Dialler(LOCAL, Lookups(loopback), phase_seconds=0.2)
        exchange = an_exchange(dialler)
        with pytest.raises(TimeoutError):
            dialler.open("hook.test", address[1], exchange)
        assert exchange.failed_at() is Stage.CONNECT
        for each in waiting:
            each.close()


def test_an_answer_that_comes_together_after_the_deadline_is_no_success(client: Client, receiver: MakeReceiver) -> None:
    result = client.post(post_to(receiver().url()), deadline_seconds=0.0)
    assert isinstance(result, Failure)
    assert result.stage is Stage.TIMEOUT
