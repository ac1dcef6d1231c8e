"""Leases on runs: the claim that takes them, and the way back to planned of those that nobody holds."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from scheduler.aws.bus import Event
from scheduler.outbox import events_in
from scheduler.runs import scheduled_for_of
from scheduler.shares import TENANT_CONCURRENCY
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Row
from scheduler.webhook.retry import RetryPolicy
from scheduler.webhook.retry_document import parse_retry

# Claims in a row without a recorded outcome after which Postgres alone calls a run poisoned.
POISONED_AFTER = 5
# Runs of a schedule that wait for an earlier one to end; a further one is skipped.
MOST_WAITING = 100


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
    """The verdicts on all ids asked for, the leases on those claimed, and when the early ones are due, at the time `now`.

    `events` are the caller's to publish.
    """

    now: datetime
    verdicts: dict[UUID, Verdict]
    leases: tuple[Lease, ...]
    early: dict[UUID, datetime]
    events: tuple[Event, ...]


def claim(
    database: Database,
    clock: Clock | None,
    asked: Mapping[UUID, timedelta | None],
    *,
    lease: timedelta,
    alone: bool,
    tenant_concurrency: int = TENANT_CONCURRENCY,
) -> Claim:
    """Takes a lease on each run that may be delivered now. `alone` also on one whose last claim left no outcome.

    `asked`: ids of runs, at least one, each with the longest wait that its message may have in the queue. Of a tenant no
    more than `tenant_concurrency` runs are under lease at once. Without a clock the statement reads the database's itself.
    """
    instants = _instants(asked)
    with database.transaction() as transaction:
        rows = transaction.run(
            "delivery.claim",
            ids=list(instants),
            scheduled_for=list(instants.values()),
            longest_waits=[asked[run_id] for run_id in instants],
            earliest=min(instants.values()),
            latest=max(instants.values()),
            now=clock and clock(transaction),
            lease=lease,
            alone=alone,
            poisoned_after=POISONED_AFTER,
            tenant_concurrency=tenant_concurrency,
            most_waiting=MOST_WAITING,
        )
    return Claim(
        now=rows[0]["now"],
        verdicts={row["id"]: Verdict(row["verdict"]) for row in rows},
        leases=tuple(_lease(row) for row in rows if row["verdict"] == Verdict.CLAIMED),
        early={row["id"]: row["next_attempt_at"] for row in rows if row["verdict"] == Verdict.EARLY},
        events=events_in(rows[0]["events"], at=rows[0]["now"]),
    )


def put_back(database: Database, clock: Clock, run_ids: Sequence[UUID]) -> set[UUID]:
    """Puts unfinished runs that nobody holds back to planned, and returns them."""
    instants = _instants(run_ids)
    with database.transaction() as transaction:
        rows = transaction.run(
            "delivery.put_back", ids=list(instants), scheduled_for=list(instants.values()), now=clock(transaction)
        )
    return {row["id"] for row in rows}


def _instants(run_ids: Iterable[UUID]) -> dict[UUID, datetime]:
    return {run_id: at for run_id in run_ids if (at := scheduled_for_of(run_id)) is not None}


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
