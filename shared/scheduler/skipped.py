"""Skipped ranges: what a schedule was expected to do and did not, with the reason, range by range and never row by row."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from scheduler.calendar.occurrences import count_occurrences, last_occurrence, next_occurrence
from scheduler.calendar.spec import CalendarSpec, excluded_only
from scheduler.errors import NotFound
from scheduler.store.connection import Database, Row, Transaction
from scheduler.timing import TICK


class SkipReason(StrEnum):
    """Why occurrences are no runs: too late for the misfire policy, inside a pause, on an excluded date, …"""

    MISSED = "missed"
    PAUSED = "paused"
    OVERLAP = "overlap"
    EXCLUDED = "excluded"
    HELD = "held"
    ENDED = "ended"
    OVER_QUOTA = "over_quota"


@dataclass(frozen=True, kw_only=True, slots=True)
class SkippedRange:
    """`occurrences` of them, from the first to the last, both included."""

    id: int
    first_scheduled_for: datetime
    last_scheduled_for: datetime
    occurrences: int
    reason: SkipReason
    recorded_at: datetime

    @classmethod
    def from_row(cls, row: Row) -> Self:
        """The range of a row, whose columns are its fields."""
        return cls(**(row | {"reason": SkipReason(row["reason"])}))


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """As much of a schedule as decides what it owes.

    `active_from`: of one that does not fire, since when nothing is accounted for. `complete`: its limit is reached.
    """

    id: UUID
    fires: bool
    active_from: datetime
    start_at: datetime | None
    end_at: datetime | None
    held_until: datetime | None
    complete: bool


def list_skipped(
    database: Database, tenant_id: UUID, schedule_id: UUID, *, before: tuple[datetime, int], most: int
) -> list[SkippedRange]:
    """At most `most` ranges of a schedule before the keyset (last_scheduled_for, id), newest first. NotFound."""
    with database.transaction() as transaction:
        if not transaction.run("schedules.get", tenant_id=tenant_id, id=schedule_id):
            raise NotFound(f"no schedule {schedule_id}")
        rows = transaction.run(
            "skipped.list",
            tenant_id=tenant_id,
            schedule_id=schedule_id,
            before_at=before[0],
            before_id=before[1],
            most=most,
        )
    return [SkippedRange.from_row(row) for row in rows]


def record_hold(transaction: Transaction, new: Standing, spec: CalendarSpec, *, now: datetime) -> None:
    """Accounts at once for a pause whose end is known; a change before its end takes back the rest."""
    if new.held_until is not None:
        account_for_pause(transaction, new, spec, now, new.held_until - TICK, now)


def account_for_pause(
    transaction: Transaction, schedule: Standing, spec: CalendarSpec, after: datetime, until: datetime, now: datetime
) -> None:
    """Records what lies in (after, until] of the tenant's own window as inside a pause: it is not missed."""
    if schedule.start_at is not None:
        after = max(after, schedule.start_at - TICK)
    if schedule.end_at is not None:
        until = min(until, schedule.end_at - TICK)
    first = None if schedule.complete else next_occurrence(spec, after)
    if first is None or first > until:
        return
    transaction.run(
        "skipped.record",
        schedule_id=schedule.id,
        first=first,
        last=last_occurrence(spec, after, until),
        occurrences=count_occurrences(spec, after, until),
        reason=SkipReason.PAUSED.value,
        now=now,
    )


def take_back_later(transaction: Transaction, schedule_id: UUID, spec: CalendarSpec, now: datetime) -> None:
    """Ends the recorded ranges of a schedule at `now`: what is later, the change that happens now decides anew."""
    transaction.run("skipped.drop_later", schedule_id=schedule_id, now=now)
    for row in transaction.run("skipped.straddling", schedule_id=schedule_id, now=now):
        counted = excluded_only(spec) if row["reason"] == SkipReason.EXCLUDED else spec
        before = row["first_scheduled_for"] - TICK
        # Where the calendar was given other zone data or dates since, its first occurrence at least is left of it.
        transaction.run(
            "skipped.trim",
            id=row["id"],
            last=last_occurrence(counted, before, now) or row["first_scheduled_for"],
            occurrences=max(count_occurrences(counted, before, now), 1),
        )
