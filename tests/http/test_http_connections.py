"""Connections are kept and used again, never too long, never across origins, and never for a second silent POST."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from scheduler.http.client import Client
from scheduler.webhook.outcome import Answer, Failure, Stage

from tests.http.receiver import LOCAL, OK, Peer, Received, Receiver, loopback, post_to, says, says_and_hangs_up

type MakeReceiver = Callable[..., Receiver]


def post(client: Client, url: str) -> Answer | Failure:
    return client.post(post_to(url), deadline_seconds=5)


def test_two_posts_to_one_origin_use_one_connection(client: Client, receiver: MakeReceiver) -> None:
    listening = receiver()
    assert isinstance(post(client, listening.url("/a?b=%20c")), Answer)
    assert isinstance(post(client, listening.url("//d/../e")), Answer)
    assert listening.connections == 1
    assert [each.line for each in listening.requests] == ["POST /a?b=%20c HTTP/1.1", "POST //d/../e HTTP/1.1"]


def test_two_names_at_one_address_never_share_a_connection(client: Client, receiver: MakeReceiver) -> None:
    listening = receiver()
    for host in ("one.test", "two.test", "ONE.test."):
        assert isinstance(post(client, listening.url(host=host)), Answer)
    assert listening.connections == 2
    hosts = [each.headers["host"].partition(":")[0] for each in listening.requests]
    assert hosts == ["one.test", "two.test", "one.test"]


def test_a_connection_that_rested_too_long_is_not_used_again(receiver: MakeReceiver) -> None:
    client = Client(LOCAL, resolver=loopback, idle_seconds=0)
    listening = receiver()
    for _ in range(2):
        assert isinstance(post(client, listening.url()), Answer)
    assert listening.connections == 2
    client.close()


def test_a_connection_that_the_receiver_closed_between_two_posts_costs_no_attempt(
    client: Client, receiver: MakeReceiver
) -> None:
    listening = receiver(says_and_hangs_up(OK))
    for _ in range(3):
        assert isinstance(post(client, listening.url()), Answer)
        assert listening.ended.acquire(timeout=5)
    assert listening.connections == 3


def test_a_kept_connection_that_dies_under_a_post_fails_it_and_sends_nothing_twice(
    client: Client, receiver: MakeReceiver
) -> None:
    def script(peer: Peer, _: Received) -> None:
        if len(listening.requests) == 2:
            peer.reset()
        else:
            peer.send(OK)

    listening = receiver(script)
    assert isinstance(post(client, listening.url()), Answer)
    second = post(client, listening.url())
    assert isinstance(second, Failure)
    assert (second.stage, second.reused) == (Stage.READ, True)
    assert len(listening.requests) == 2
    assert isinstance(post(client, listening.url()), Answer)
    assert [each.connection for each in listening.requests] == [1, 1, 2]


def test_bytes_after_an_answer_are_not_the_next_answer(client: Client, receiver: MakeReceiver) -> None:
    listening = receiver(says(OK + b"HTTP/1.1 500 Smuggled\r\nContent-Length: 0\r\n\r\n"))
    for _ in range(2):
        result = post(client, listening.url())
        assert isinstance(result, Answer)
        assert result.status == 200


@pytest.mark.parametrize(
    "wire",
    [
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", id="upgraded"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000, id="longer than is read"),
    ],
)
def test_a_connection_with_an_unread_rest_is_not_used_again(
    client: Client, receiver: MakeReceiver, wire: bytes
) -> None:
    listening = receiver(says(wire))
    for _ in range(2):
        assert isinstance(post(client, listening.url()), Answer)
    assert listening.connections == 2


def test_ten_posts_go_out_side_by_side(client: Client, receiver: MakeReceiver) -> None:
    together = threading.Barrier(10, timeout=5)

    def script(peer: Peer, received: Received) -> None:
        together.wait()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(received.body), received.body))

    listening = receiver(script)
    bodies = [b"%d" % number for number in range(10)]
    with ThreadPoolExecutor(10) as threads:
        for _ in range(2):
            results = list(
                threads.map(lambda body: client.post(post_to(listening.url(), body), deadline_seconds=5), bodies)
            )
            assert [each.body_excerpt for each in results if isinstance(each, Answer)] == bodies
    assert listening.connections == 10


def test_a_proxy_in_the_environment_is_not_asked(
    client: Client, receiver: MakeReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, listening = receiver(), receiver()
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy.url(""))
    assert isinstance(post(client, listening.url(host="hook.test")), Answer)
    assert (len(proxy.requests), len(listening.requests)) == (0, 1)


def test_a_receivers_cookie_is_not_kept(client: Client, receiver: MakeReceiver) -> None:
    listening = receiver(says(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n"))
    for _ in range(2):
        post(client, listening.url())
    assert "cookie" not in listening.requests[1].headers


def test_the_body_goes_out_as_bytes_with_their_length(client: Client, receiver: MakeReceiver) -> None:
    """ht-05: a chunked upload has no deadline in the library underneath, and some receivers refuse it."""
    listening = receiver()
    for body in (b"", b"\x00\xff", b"x" * 200_000):
        assert isinstance(client.post(post_to(listening.url(), body), deadline_seconds=5), Answer)
        received = listening.requests[-1]
        assert received.body == body
        assert received.headers["content-length"] == str(len(body))
        assert "transfer-encoding" not in received.headers


def test_nobody_listening_is_a_failure_to_connect(client: Client, receiver: MakeReceiver) -> None:
    with Receiver() as gone:
        url = gone.url()
    result = post(client, url)
    assert isinstance(result, Failure)
    assert result.stage is Stage.CONNECT


def test_the_next_address_is_tried_where_the_first_does_not_listen(receiver: MakeReceiver) -> None:
    client = Client(LOCAL, resolver=lambda host, port: ("127.0.0.2", "127.0.0.1"))
    assert isinstance(post(client, receiver().url(host="hook.test")), Answer)
    client.close()
