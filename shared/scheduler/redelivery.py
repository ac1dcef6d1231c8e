"""By hand: a run that ended is delivered again, one that has not ended is cancelled. The idempotency key stays the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from scheduler.errors import Conflict, NotFound
from scheduler.history import Run
from scheduler.preconditions import ANYHOW, Precondition
from scheduler.runs import Reason, State, scheduled_for_of
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Transaction

# Of one call: more would hold their locks for longer than a claim should wait.
MOST_AT_ONCE = 10_000


class Ended(StrEnum):
    """The states that a run may be delivered again from."""

    FAILED = "failed"
    SUCCEEDED = "succeeded"


@dataclass(frozen=True, kw_only=True, slots=True)
class Filter:
    """Which ended runs are meant: those scheduled in [since, until), of one schedule, for one reason; None is any."""

    state: Ended
    since: datetime
    until: datetime
    schedule_id: UUID | None = None
    reason: Reason | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Redelivered:
    """How many runs a filter matched, and how many of them are delivered again: none of a dry run, 10,000 at most."""

    matched: int
    redelivered: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Redelivery:
    """The use cases, over one database and clock."""

    database: Database
    clock: Clock

    def redeliver(self, tenant_id: UUID, run_id: UUID, *, only: Precondition = ANYHOW) -> UUID:
        """Plans an ended run anew, due now; returns its schedule's id.

        NotFound; PreconditionFailed; Conflict where it has not failed or succeeded, or nobody owns it.
        """
        with self.database.transaction() as transaction:
            run = _lock(transaction, tenant_id, run_id, only)
            if not self._redeliver(transaction, tenant_id, {run_id: run.scheduled_for}, list(Ended)):
                deleted = run.state in (State.FAILED, State.SUCCEEDED)
                raise Conflict(
                    "its schedule is deleted" if deleted else f"it is {run.state}, neither failed nor succeeded"
                )
        return run.schedule_id

    def redeliver_many(self, tenant_id: UUID, wanted: Filter, *, dry_run: bool) -> Redelivered:
        """Plans all matching runs anew, oldest first; a dry run counts them and changes nothing."""
        words = {
            "tenant_id": tenant_id,
            "state": wanted.state.value,
            "since": wanted.since,
            "until": wanted.until,
            "schedule_id": wanted.schedule_id,
            "reason": wanted.reason and wanted.reason.value,
        }
        with self.database.transaction() as transaction:
            matched = transaction.run("redelivery.count", **words)[0]["matched"]
            if dry_run or not matched:
                return Redelivered(matched=matched, redelivered=0)
            rows = transaction.run("redelivery.matching", most=MOST_AT_ONCE, **words)
            found = {row["id"]: row["scheduled_for"] for row in rows}
            done = self._redeliver(transaction, tenant_id, found, [wanted.state])
        return Redelivered(matched=matched, redelivered=done)

    def cancel(self, tenant_id: UUID, run_id: UUID, *, only: Precondition = ANYHOW) -> None:
        """Ends an unfinished run.

        NotFound; PreconditionFailed; Conflict where it has ended, or is being posted at this moment.
        """
        with self.database.transaction() as transaction:
            state = _lock(transaction, tenant_id, run_id, only).state
            now, at = self.clock(transaction), _scheduled_for(run_id)
            if not transaction.run("redelivery.cancel", tenant_id=tenant_id, id=run_id, scheduled_for=at, now=now):
                busy = state is State.DELIVERING
                raise Conflict("it is being delivered at this moment; try again" if busy else f"it is {state} already")

    def _redeliver(
        self, transaction: Transaction, tenant_id: UUID, found: Mapping[UUID, datetime], states: Sequence[Ended]
    ) -> int:
        return transaction.change(
            "redelivery.redeliver",
            tenant_id=tenant_id,
            ids=list(found),
            scheduled_for=list(found.values()),
            states=[state.value for state in states],
            now=self.clock(transaction),
        )


def _scheduled_for(run_id: UUID) -> datetime:
    scheduled_for = scheduled_for_of(run_id)
    if scheduled_for is None:
        raise NotFound(f"no run {run_id}")
    return scheduled_for


def _lock(transaction: Transaction, tenant_id: UUID, run_id: UUID, only: Precondition) -> Run:
    rows = transaction.run("redelivery.lock", tenant_id=tenant_id, id=run_id, scheduled_for=_scheduled_for(run_id))
    if not rows:
        raise NotFound(f"no run {run_id}")
    run = Run.from_row(rows[0])
    only.check(run.tag)
    return run
