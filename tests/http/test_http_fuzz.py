"""Whatever bytes a receiver sends, a POST ends as a value that can be stored."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scheduler.http.client import Client
from scheduler.webhook.attempt_log import storable, storable_headers
from scheduler.webhook.outcome import Answer, Failure, Outcome, classify

from tests.http.receiver import LOCAL, Peer, Received, Receiver, loopback, post_to

# Mostly well-formed, so that headers and bodies get their share of the nonsense too.
STATUS_LINES = st.builds(
    lambda version, status, reason: b"HTTP/%b %b %b" % (version, status, reason),
    st.sampled_from([b"1.1"] * 8 + [b"1.0", b"0.9", b"2", b""]),
    st.sampled_from([b"200"] * 5 + [b"204", b"100", b"101", b"302", b"410", b"503", b"-1", b"1e3", b"\xb2\xb2\xb2"]),
    st.sampled_from([b"OK"] * 5 + [b"", b"\0", b"\r", b"\xff\xfe"]),
)
HEADERS = st.lists(
    st.one_of(
        st.binary(max_size=60),
        st.builds(
            lambda name, value: name + b":" + value,
            st.sampled_from(
                [
                    b"Content-Length",
                    b"Transfer-Encoding",
                    b"Content-Encoding",
                    b"Connection",
                    b"Content-Type",
                    b"Location",
                    b"Retry-After",
                    b"Set-Cookie",
                    b"X-No-Retry",
                    b" Folded",
                    b"",
                ]
            ),
            st.one_of(
                st.binary(max_size=30),
                st.sampled_from(
                    [b"5", b"-5", b"99999999999999999999", b"chunked", b"gzip", b"close", b"http://[", b"2, 3"]
                ),
            ),
        ),
    ),
    max_size=8,
)
BODIES = st.one_of(
    st.binary(max_size=80),
    st.lists(
        st.sampled_from([b"5\r\nhello\r\n", b"0\r\n\r\n", b"-1\r\n", b"ffffffffffffffff\r\n", b"X: y\r\n"]), max_size=5
    ).map(b"".join),
)
RESPONSES = st.builds(
    lambda line, headers, body, end: end.join([line, *headers, b"", body]),
    STATUS_LINES,
    HEADERS,
    BODIES,
    st.sampled_from([b"\r\n"] * 4 + [b"\n", b"\r"]),
)


@dataclass
class Rude:
    """A receiver and its client; `wire` is what the receiver says next before it hangs up."""

    receiver: Receiver
    client: Client
    wire: bytes = b""

    def answer(self, peer: Peer, _: Received) -> None:
        peer.send(self.wire)
        peer.hang_up()


@pytest.fixture(scope="module")
def rude() -> Iterator[Rude]:
    with Receiver() as receiver:
        made = Rude(receiver, Client(LOCAL, resolver=loopback))
        receiver.script = made.answer
        yield made
        made.client.close()


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(wire=st.one_of(RESPONSES, RESPONSES.map(lambda wire: wire[: len(wire) * 2 // 3]), st.binary(max_size=200)))
def test_a_post_never_raises_and_its_result_can_be_stored(rude: Rude, wire: bytes) -> None:
    rude.wire = wire
    result = rude.client.post(post_to(rude.receiver.url()), deadline_seconds=5)
    assert classify(result) in Outcome
    match result:
        case Answer():
            assert 100 <= result.status <= 999
            texts = [
                storable(result.body_excerpt),
                *(part for pair in storable_headers(result.headers) for part in pair),
            ]
        case Failure():
            texts = [result.detail]
    for text in texts:
        assert "\0" not in text
        text.encode()
