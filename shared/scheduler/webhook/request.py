"""Builds the signed POST of one attempt: the idempotency key, the body and every header, from values alone.

The key and the header names are the public contract: they never change for an occurrence, whoever delivers it.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from scheduler.errors import InvalidInput, Problem
from scheduler.webhook.signature import SigningSecret, sign

USER_AGENT = "Carillon/1"
DEFAULT_CONTENT_TYPE = "application/json"
MAX_BODY_BYTES = 256 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Delivery:
    """One attempt to make: what the tenant stored, and which occurrence and attempt this is.

    `scheduled_for` is aware and in whole seconds, un-jittered; `attempt` counts claims from 1; `headers` are the
    tenant's own, as `check_headers` returned them; `body` None means the default document.
    """

    schedule_id: UUID
    run_id: UUID
    scheduled_for: datetime
    attempt: int
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class OutboundRequest:
    """A POST ready for the wire: the body bytes are those that were signed."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


def instant_text(moment: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SSZ` in UTC; ValueError where the moment is naive or not a whole second."""
    if moment.tzinfo is None:
        raise ValueError("a naive datetime names no instant")
    if moment.microsecond:
        raise ValueError("scheduled instants are whole seconds")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def idempotency_key(schedule_id: UUID, scheduled_for: datetime) -> str:
    """64 lower-case hex digits: SHA-256 over the schedule id's 36 characters followed directly by the instant."""
    return hashlib.sha256(f"{schedule_id}{instant_text(scheduled_for)}".encode()).hexdigest()


def default_body(schedule_id: UUID, run_id: UUID, scheduled_for: datetime) -> bytes:
    """The JSON sent where the tenant stored no payload; the same bytes on every attempt, so it names no attempt."""
    document = {
        "run_id": str(run_id),
        "schedule_id": str(schedule_id),
        "scheduled_for": instant_text(scheduled_for),
    }
    return json.dumps(document, separators=(",", ":")).encode()


def body_bytes(text: str, pointer: str = "/body") -> bytes:
    """The tenant's payload text as the bytes to store and to send; InvalidInput where it has none or too many.

    JSON admits `"\\ud800"`, a lone surrogate, which no UTF-8 can carry: it is refused here, before anything is stored.
    """
    try:
        body = text.encode("utf-8")
    except UnicodeEncodeError as error:
        detail = f"character {error.start} is a lone surrogate, which UTF-8 can't carry"
        raise InvalidInput(Problem(pointer=pointer, detail=detail)) from None
    if len(body) > MAX_BODY_BYTES:
        raise InvalidInput(Problem(pointer=pointer, detail=f"{len(body)} bytes; at most {MAX_BODY_BYTES} can be sent"))
    return body


def build_request(delivery: Delivery, *, secrets: Sequence[SigningSecret], now: datetime) -> OutboundRequest:
    """The attempt's request, signed with every secret (newest first) at `now` (aware; whole seconds are sent).

    Each attempt is signed anew: receivers refuse a timestamp more than five minutes off. ValueError where `now` is
    naive or there is no secret.
    """
    if now.tzinfo is None:
        raise ValueError("a naive datetime names no instant")
    key = idempotency_key(delivery.schedule_id, delivery.scheduled_for)
    timestamp = int(now.timestamp())
    body = delivery.body
    if body is None:
        body = default_body(delivery.schedule_id, delivery.run_id, delivery.scheduled_for)
    signature = sign(secrets, message_id=key, timestamp=timestamp, body=body)
    return OutboundRequest(
        url=delivery.url,
        headers=(*_own_headers(delivery, key, timestamp, signature), *_tenant_headers(delivery.headers)),
        body=body,
    )


def _own_headers(delivery: Delivery, key: str, timestamp: int, signature: str) -> tuple[tuple[str, str], ...]:
    return (
        ("X-Idempotency-Key", key),
        ("X-Schedule-Id", str(delivery.schedule_id)),
        ("X-Run-Id", str(delivery.run_id)),
        ("X-Attempt", str(delivery.attempt)),
        ("X-Scheduled-For", instant_text(delivery.scheduled_for)),
        ("X-Signature", signature),
        ("webhook-id", key),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", signature),
        ("User-Agent", USER_AGENT),
        ("Accept-Encoding", "identity"),
    )


def _tenant_headers(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    if any(name.lower() == "content-type" for name, _ in headers):
        return headers
    return (("Content-Type", DEFAULT_CONTENT_TYPE), *headers)
