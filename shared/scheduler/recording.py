"""The record of a batch's attempts: outcomes under their fencing tokens, and all that follows from them, in one statement."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from scheduler.aws.bus import Event
from scheduler.aws.queue import Message
from scheduler.breaker import BreakerPolicy
from scheduler.dispatch import message_for
from scheduler.leases import Lease
from scheduler.outbox import events_in
from scheduler.runs import Reason, State
from scheduler.store.connection import Database, Row
from scheduler.webhook.attempt_log import storable, storable_headers
from scheduler.webhook.outcome import Answer, Failure, endpoint_failed, stage_of

DEFAULT_BREAKER = BreakerPolicy()


class Logged(StrEnum):
    """What an attempt's log and event say of it."""

    SUCCEEDED = "succeeded"
    RETRYING = "retrying"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settlement:
    """What becomes of a leased run: its next state, and the attempt to log, or none where nothing was tried.

    `gone` also has its schedule disabled.
    """

    lease: Lease
    state: State
    reason: Reason | None = None
    gone: bool = False
    next_attempt_at: datetime
    started_at: datetime
    logged: Logged | None
    result: Answer | Failure | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """The runs that a record changed, not those claimed by another since; and what is left to do when it is committed.

    `disables`: schedules are to be disabled. `woken`: messages for runs that waited for one that has ended. `events` are to
    be published.
    """

    changed: frozenset[UUID]
    disables: bool
    woken: tuple[Message, ...] = ()
    events: tuple[Event, ...] = ()


def record(
    database: Database,
    settlements: Sequence[Settlement],
    *,
    now: datetime,
    held_until: datetime,
    breaker: BreakerPolicy = DEFAULT_BREAKER,
) -> Recorded:
    """Stores outcomes, in one statement. Until `held_until` nobody but the caller publishes the events."""
    columns = [_columns(settlement) for settlement in settlements]
    arrays: dict[str, list[Any]] = {name: [row[name] for row in columns] for name in columns[0]}
    with database.transaction() as transaction:
        rows = transaction.run(
            "delivery.record",
            now=now,
            held_until=held_until,
            earliest=min(arrays["scheduled_for"]),
            latest=max(arrays["scheduled_for"]),
            breaker_window=breaker.window,
            breaker_volume=breaker.volume,
            breaker_ratio=breaker.ratio,
            first_wait=breaker.first_wait,
            longest_wait=breaker.longest_wait,
            failing_for=breaker.failing_for,
            **arrays,
        )
    if not rows:
        return Recorded(changed=frozenset(), disables=False)
    return Recorded(
        changed=frozenset(row["id"] for row in rows),
        disables=rows[0]["disables"],
        woken=tuple(_message(each, now) for each in rows[0]["woken"] or ()),
        events=events_in(rows[0]["events"], at=now),
    )


def _message(woken: Row, now: datetime) -> Message:
    at = datetime.fromisoformat(woken["next_attempt_at"])
    return message_for(UUID(woken["id"]), UUID(woken["tenant_id"]), at, now)


def _columns(settlement: Settlement) -> dict[str, object]:
    lease, result = settlement.lease, settlement.result
    answer = result if isinstance(result, Answer) else None
    timings = result.timings if result else None
    stage = stage_of(result) if result else None
    return {
        "ids": lease.run_id,
        "scheduled_for": lease.scheduled_for,
        "attempts": lease.attempt,
        "states": settlement.state.value,
        "reasons": settlement.reason and settlement.reason.value,
        "failed": int(settlement.logged in (Logged.RETRYING, Logged.FAILED)),
        "next_attempt_ats": settlement.next_attempt_at,
        "outcomes": settlement.logged and settlement.logged.value,
        "gone": settlement.gone,
        "origins": lease.origin,
        "unhealthy": int(result is not None and endpoint_failed(result)),
        "started_ats": settlement.started_at,
        "lateness_ms": lateness_ms(settlement),
        "stages": stage and stage.value,
        "statuses": answer and answer.status,
        "details": storable(result.detail.encode("utf-8", "replace")) if isinstance(result, Failure) else None,
        "response_headers": json.dumps(storable_headers(answer.headers) if answer else ()),
        "response_bodies": storable(answer.body_excerpt if answer else b""),
        "dns_ms": timings and timings.dns,
        "connect_ms": timings and timings.connect,
        "tls_ms": timings and timings.tls,
        "first_byte_ms": timings and timings.first_byte,
        "total_ms": timings.total if timings else 0,
    }


def lateness_ms(settlement: Settlement) -> int:
    """How late the attempt began, in milliseconds: a retry against the time it was put off to, others against the run's due."""
    lease = settlement.lease
    expected = lease.next_attempt_at if lease.failures else lease.due_at
    return round((settlement.started_at - expected) / timedelta(milliseconds=1))
