"""The request of an attempt: one key an occurrence, identical bodies, fresh signatures, the contract's headers."""

import hashlib
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from scheduler.errors import InvalidInput
from scheduler.webhook.request import (
    MAX_BODY_BYTES,
    Delivery,
    OutboundRequest,
    body_bytes,
    build_request,
    default_body,
    idempotency_key,
)
from scheduler.webhook.signature import SigningSecret

SCHEDULE = UUID("6F1E5A3C-0B52-4C5E-9A43-1F2D3C4B5A69")
RUN = UUID("019b76da-a800-7000-8000-000000000001")
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
SECRET = SigningSecret(key=bytes(32))


def request(*, attempt: int = 1, now: datetime = NOON, **changes: object) -> OutboundRequest:
    stored: dict[str, object] = {"url": "https://hook.example/x", "body": b'{"a":1}'} | changes
    delivery = Delivery(schedule_id=SCHEDULE, run_id=RUN, scheduled_for=NOON, attempt=attempt, **stored)  # type: ignore[arg-type]
    return build_request(delivery, secrets=[SECRET], now=now)


def test_the_key_is_the_sha_256_of_the_lower_case_id_and_the_instant() -> None:
    text = "6f1e5a3c-0b52-4c5e-9a43-1f2d3c4b5a692026-12-01T12:00:00Z"
    assert idempotency_key(SCHEDULE, NOON) == hashlib.sha256(text.encode()).hexdigest()
    assert idempotency_key(SCHEDULE, NOON) == "046ec91e1606f931358f366ca92b4424a64e9bceeb1d6b2474e0847022864bc7"


def test_the_key_knows_the_instant_and_not_the_zone_that_wrote_it() -> None:
    assert idempotency_key(SCHEDULE, NOON.astimezone(timezone(timedelta(hours=9)))) == idempotency_key(SCHEDULE, NOON)


@pytest.mark.parametrize("moment", [datetime(2026, 12, 1, 12), NOON.replace(microsecond=1)])  # noqa: DTZ001
def test_a_naive_or_fractional_instant_has_no_key(moment: datetime) -> None:
    with pytest.raises(ValueError, match=r"naive|whole"):
        idempotency_key(SCHEDULE, moment)


def test_attempts_of_one_run_share_id_and_body_and_differ_in_attempt_time_and_signature() -> None:
    """wh-07 and sg-15: a retry an hour later is the same message, signed anew."""
    first = request(attempt=1)
    second = request(attempt=2, now=NOON + timedelta(hours=1))
    third = request(attempt=3, now=NOON + timedelta(hours=2))
    headers = [dict(each.headers) for each in (first, second, third)]
    assert len({each["webhook-id"] for each in headers}) == 1
    assert len({each.body for each in (first, second, third)}) == 1
    assert [each["X-Attempt"] for each in headers] == ["1", "2", "3"]
    stamps = [int(each["webhook-timestamp"]) for each in headers]
    assert [stamp - stamps[0] for stamp in stamps] == [0, 3600, 7200]
    assert len({each["webhook-signature"] for each in headers}) == 3


def test_every_header_of_the_contract_is_there() -> None:
    headers = dict(request(headers=(("X-Own", "1"),)).headers)
    key = idempotency_key(SCHEDULE, NOON)
    assert headers == {
        "X-Idempotency-Key": key,
        "X-Schedule-Id": str(SCHEDULE),
        "X-Run-Id": str(RUN),
        "X-Attempt": "1",
        "X-Scheduled-For": "2026-12-01T12:00:00Z",
        "X-Signature": headers["webhook-signature"],
        "webhook-id": key,
        "webhook-timestamp": str(int(NOON.timestamp())),
        "webhook-signature": headers["webhook-signature"],
        "User-Agent": "Carillon/1",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        "X-Own": "1",
    }


def test_the_tenant_s_content_type_replaces_ours() -> None:
    headers = request(headers=(("content-type", "text/plain"),)).headers
    assert [value for name, value in headers if name.lower() == "content-type"] == ["text/plain"]


def test_without_a_payload_the_body_names_the_run_and_no_attempt() -> None:
    expected = (
        b'{"run_id":"019b76da-a800-7000-8000-000000000001",'
        b'"schedule_id":"6f1e5a3c-0b52-4c5e-9a43-1f2d3c4b5a69","scheduled_for":"2026-12-01T12:00:00Z"}'
    )
    assert default_body(SCHEDULE, RUN, NOON) == expected
    assert request(body=None, attempt=1).body == request(body=None, attempt=9).body == expected


def test_an_empty_payload_is_sent_empty() -> None:
    assert request(body=b"").body == b""


def test_a_payload_text_is_sent_as_its_utf_8() -> None:
    assert body_bytes("zażółć 🚀") == "zażółć 🚀".encode()


@pytest.mark.parametrize(
    "text", [pytest.param("\ud800", id="wh-06"), pytest.param("é" * (MAX_BODY_BYTES // 2 + 1), id="too long in bytes")]
)
def test_a_payload_that_can_not_be_sent_is_refused_when_it_is_given(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        body_bytes(text)
    assert caught.value.problems[0].pointer == "/body"
