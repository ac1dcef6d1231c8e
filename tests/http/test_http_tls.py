"""TLS is verified for the URL's own name, on an address that was judged, and fails as its own stage."""

import datetime as dt
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from scheduler.http.client import Client
from scheduler.webhook.outcome import Answer, Failure, Stage

from tests.http.certificates import Authority, make_authority
from tests.http.receiver import LOCAL, Peer, Received, Receiver, Script, loopback, post_to, says_ok


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def client(authority: Authority) -> Iterator[Client]:
    made = Client(LOCAL, ca_file=authority.ca_file, resolver=loopback)
    yield made
    made.close()


def post(client: Client, context: ssl.SSLContext, script: Script = says_ok, seconds: float = 5) -> Answer | Failure:
    with Receiver(script, tls=context) as receiver:
        return client.post(post_to(receiver.url(host="hook.test")), deadline_seconds=seconds)


def test_a_verified_name_is_answered_with_its_own_sni_and_host(client: Client, authority: Authority) -> None:
    context, asked = authority.server("hook.test"), []
    context.sni_callback = lambda _socket, name, _context: asked.append(name)
    with Receiver(tls=context) as receiver:
        results = [client.post(post_to(receiver.url(host="hook.test")), deadline_seconds=5) for _ in range(2)]
        assert all(isinstance(each, Answer) for each in results)
        assert asked == ["hook.test"]
        assert {each.headers["host"] for each in receiver.requests} == {f"hook.test:{receiver.port}"}
        assert receiver.connections == 1
    assert results[0].timings.tls is not None


def test_two_names_at_one_address_shake_hands_each_for_itself(client: Client, authority: Authority) -> None:
    context, asked = authority.server("one.test"), []
    two = authority.server("two.test")

    def choose(peer: ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> None:
        asked.append(name)
        if name == "two.test":
            peer.context = two

    context.sni_callback = choose
    with Receiver(tls=context) as receiver:
        for host in ("one.test", "two.test", "one.test", "two.test"):
            result = client.post(post_to(receiver.url(host=host)), deadline_seconds=5)
            assert isinstance(result, Answer)
        assert asked == ["one.test", "two.test"]


def test_a_certificate_for_another_name_is_refused_and_nothing_is_sent(client: Client, authority: Authority) -> None:
    with Receiver(tls=authority.server("other.test")) as receiver:
        result = client.post(post_to(receiver.url(host="hook.test")), deadline_seconds=5)
        assert receiver.requests == []
    assert isinstance(result, Failure)
    assert result.stage is Stage.TLS
    assert "not valid for 'hook.test'" in result.detail


def test_a_certificate_of_an_unknown_authority_is_refused(client: Client, tmp_path: Path) -> None:
    result = post(client, make_authority(tmp_path).server("hook.test"))
    assert isinstance(result, Failure)
    assert result.stage is Stage.TLS
    assert "CERTIFICATE_VERIFY_FAILED" in result.detail


def test_an_expired_certificate_is_refused(client: Client, authority: Authority) -> None:
    yesterday = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    result = post(client, authority.server("hook.test", ends=yesterday))
    assert isinstance(result, Failure)
    assert result.stage is Stage.TLS
    assert "expired" in result.detail


def accept_and_hang_up(listener: socket.socket) -> None:
    listener.accept()[0].close()


def test_a_peer_that_speaks_no_tls_fails_at_tls(client: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        threads.submit(accept_and_hang_up, listener)
        result = client.post(post_to(f"https://hook.test:{listener.getsockname()[1]}/"), deadline_seconds=5)
    assert isinstance(result, Failure)
    assert result.stage is Stage.TLS


def test_an_old_protocol_version_is_refused(client: Client, authority: Authority) -> None:
    context = authority.server("hook.test")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = ssl.TLSVersion.TLSv1_1
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    result = post(client, context)
    assert isinstance(result, Failure)
    assert result.stage is Stage.TLS


def test_a_drip_inside_tls_is_cut_at_the_deadline(client: Client, authority: Authority) -> None:
    def script(peer: Peer, _: Received) -> None:
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        peer.drip(b"x" * 1000)

    begun = time.monotonic()
    result = post(client, authority.server("hook.test"), script, seconds=0.4)
    assert isinstance(result, Failure)
    assert result.stage is Stage.TIMEOUT
    assert time.monotonic() - begun < 2


def test_a_receiver_that_reads_nothing_inside_tls_is_cut_at_the_deadline(client: Client, authority: Authority) -> None:
    done = threading.Event()

    def shakes_hands_and_sleeps(listener: socket.socket) -> None:
        with authority.server("hook.test").wrap_socket(listener.accept()[0], server_side=True):
            done.wait(10)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        sleeper = threads.submit(shakes_hands_and_sleeps, listener)
        url = f"https://hook.test:{listener.getsockname()[1]}/"
        result = client.post(post_to(url, b"x" * 32_000_000), deadline_seconds=0.5)
        done.set()
        sleeper.result(5)
    assert isinstance(result, Failure)
    assert result.stage is Stage.TIMEOUT


def test_a_connection_cut_while_writing_inside_tls_fails_at_write(client: Client, authority: Authority) -> None:
    def shakes_hands_and_resets(listener: socket.socket) -> None:
        with authority.server("hook.test").wrap_socket(listener.accept()[0], server_side=True) as accepted:
            accepted.recv(1)
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as threads:
        threads.submit(shakes_hands_and_resets, listener)
        url = f"https://hook.test:{listener.getsockname()[1]}/"
        result = client.post(post_to(url, b"x" * 32_000_000), deadline_seconds=5)
    assert isinstance(result, Failure)
    assert result.stage is Stage.WRITE
