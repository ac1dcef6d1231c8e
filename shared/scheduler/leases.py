"""Leases on runs: the claim that takes them, the record that ends them, and the ways back to planned."""

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from scheduler.breaker import BreakerPolicy
from scheduler.runs import Reason, State, scheduled_for_of
from scheduler.shares import TENANT_CONCURRENCY
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Row
from scheduler.webhook.attempt_log import storable, storable_headers
from scheduler.webhook.outcome import Answer, Failure, endpoint_failed, stage_of
from scheduler.webhook.retry import RetryPolicy
from scheduler.webhook.retry_document import parse_retry

# Claims in a row without a recorded outcome after which Postgres alone calls a run poisoned.
POISONED_AFTER = 5
# Runs of a schedule that wait for an earlier one to end; a further one is skipped.
MOST_WAITING = 100
DEFAULT_BREAKER = BreakerPolicy()


class Verdict(StrEnum):
    """What the claim found for one run id; the SQL of the claim explains each."""

    CLAIMED = "claimed"
    PARKED = "parked"
    EARLY = "early"
    SUSPECT = "suspect"
    POISONED = "poisoned"
    CANCELLED = "cancelled"
    BUSY = "busy"
    BARRED = "barred"
    WAITING = "waiting"
    SKIPPED = "skipped"
    HELD = "held"
    SETTLED = "settled"


@dataclass(frozen=True, kw_only=True, slots=True)
class Lease:
    """One claimed run with all that its attempt needs. `attempt` is X-Attempt and the fencing token."""

    run_id: UUID
    tenant_id: UUID
    schedule_id: UUID
    scheduled_for: datetime
    attempt: int
    failures: int
    due_at: datetime
    # What the policy's maximum age counts from: when it was due, or asked for anew.
    counts_from: datetime
    next_attempt_at: datetime
    retry: RetryPolicy
    retry_client_errors: bool
    url: str
    # Its endpoint, None where the URL has none that we know.
    origin: str | None
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    # Encrypted signing secrets, newest first.
    secrets: tuple[bytes, ...] = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """The verdicts on all ids asked for, the leases on those claimed, and when the early ones are due, at the time `now`."""

    now: datetime
    verdicts: dict[UUID, Verdict]
    leases: tuple[Lease, ...]
    early: dict[UUID, datetime]


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


def claim(
    database: Database,
    clock: Clock,
    run_ids: Sequence[UUID],
    *,
    lease: timedelta,
    alone: bool,
    tenant_concurrency: int = TENANT_CONCURRENCY,
) -> Claim:
    """Takes a lease on each run that may be delivered now. `alone` also on one whose last claim left no outcome.

    Of a tenant no more than `tenant_concurrency` runs are under lease at once.
    """
    known = {run_id: at for run_id in run_ids if (at := scheduled_for_of(run_id)) is not None}
    with database.transaction() as transaction:
        now = clock(transaction)
        rows = transaction.run(
            "delivery.claim",
            ids=list(known),
            scheduled_for=list(known.values()),
            now=now,
            lease_until=now + lease,
            alone=alone,
            poisoned_after=POISONED_AFTER,
            tenant_concurrency=tenant_concurrency,
            most_waiting=MOST_WAITING,
        )
    verdicts = dict.fromkeys(run_ids, Verdict.SETTLED) | {row["id"]: Verdict(row["verdict"]) for row in rows}
    return Claim(
        now=now,
        verdicts=verdicts,
        leases=tuple(_lease(row) for row in rows if row["verdict"] == Verdict.CLAIMED),
        early={row["id"]: row["next_attempt_at"] for row in rows if row["verdict"] == Verdict.EARLY},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """The runs that a record changed: not those claimed by another since.

    `disables`: schedules are to be disabled. `freed`: schedules whose runs may not overlap, and of which one has just ended.
    """

    changed: frozenset[UUID]
    disables: bool
    freed: frozenset[UUID]


def record(
    database: Database, settlements: Sequence[Settlement], *, now: datetime, breaker: BreakerPolicy = DEFAULT_BREAKER
) -> Recorded:
    """Stores outcomes, in one statement."""
    columns = [_columns(settlement) for settlement in settlements]
    arrays = {name: [row[name] for row in columns] for name in columns[0]}
    with database.transaction() as transaction:
        rows = transaction.run(
            "delivery.record",
            now=now,
            breaker_window=breaker.window,
            breaker_volume=breaker.volume,
            breaker_ratio=breaker.ratio,
            first_wait=breaker.first_wait,
            longest_wait=breaker.longest_wait,
            failing_for=breaker.failing_for,
            **arrays,
        )
    return Recorded(
        changed=frozenset(row["id"] for row in rows),
        disables=any(row["disables"] for row in rows),
        freed=frozenset(row["frees"] for row in rows if row["frees"]),
    )


def park(database: Database, clock: Clock, run_ids: Sequence[UUID]) -> None:
    """Puts runs that are due later back to planned, for the planner to send when their time comes."""
    _by_id(database, clock, "delivery.park", run_ids)


def put_back(database: Database, clock: Clock, run_ids: Sequence[UUID]) -> set[UUID]:
    """Puts unfinished runs that nobody holds back to planned, and returns them."""
    return {row["id"] for row in _by_id(database, clock, "delivery.put_back", run_ids)}


def _by_id(database: Database, clock: Clock, block: str, run_ids: Sequence[UUID]) -> list[Row]:
    known = {run_id: at for run_id in run_ids if (at := scheduled_for_of(run_id)) is not None}
    with database.transaction() as transaction:
        now = clock(transaction)
        return transaction.run(block, ids=list(known), scheduled_for=list(known.values()), now=now)


def _lease(row: Row) -> Lease:
    return Lease(
        run_id=row["id"],
        tenant_id=row["tenant_id"],
        schedule_id=row["schedule_id"],
        scheduled_for=row["scheduled_for"],
        attempt=row["attempt"],
        failures=row["failures"],
        due_at=row["due_at"],
        counts_from=row["counts_from"],
        next_attempt_at=row["next_attempt_at"],
        retry=parse_retry(row["retry"]),
        retry_client_errors=row["retry_client_errors"],
        url=row["url"],
        origin=row["origin"],
        headers=tuple(row["headers"].items()),
        body=row["payload"],
        secrets=tuple(base64.b64decode(secret) for secret in row["secrets"]),
    )


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
