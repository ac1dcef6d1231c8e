"""What a schedule was expected to do and did not is recorded with its reason, range by range and never row by row."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from scheduler.calendar.occurrences import count_occurrences, last_occurrence, next_occurrence
from scheduler.calendar.spec import CalendarSpec, excluded_only
from scheduler.store.connection import Transaction
from scheduler.timing import TICK


class SkipReason(StrEnum):
    """Why occurrences are no runs: too late for the misfire policy, inside a pause, while disabled, on an excluded date."""

    MISSED = "missed"
    PAUSED = "paused"
    DISABLED = "disabled"
    EXCLUDED = "excluded"


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """As much of a schedule as decides what it owes.

    `idle`: why it does not fire, if so; `active_from` is then since when nothing is accounted for. `complete`: its limit is
    reached.
    """

    id: UUID
    idle: SkipReason | None
    active_from: datetime
    start_at: datetime | None
    end_at: datetime | None
    held_until: datetime | None
    complete: bool


def record_hold(transaction: Transaction, new: Standing, spec: CalendarSpec, *, now: datetime) -> None:
    """Accounts at once for a pause whose end is known; a change before its end takes back the rest."""
    if new.held_until is not None:
        _record(transaction, new, spec, SkipReason.PAUSED, (now, new.held_until - TICK), now)


def record_idleness(transaction: Transaction, old: Standing, spec: CalendarSpec, *, now: datetime) -> None:
    """Accounts for what a schedule that did not fire would have fired up to `now`: it is not missed."""
    if old.idle is not None:
        _record(transaction, old, spec, old.idle, (old.active_from - TICK, now), now)


def _record(
    transaction: Transaction,
    schedule: Standing,
    spec: CalendarSpec,
    reason: SkipReason,
    between: tuple[datetime, datetime],
    now: datetime,
) -> None:
    """Records what lies in (after, until] of the tenant's own window."""
    after, until = between
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
        reason=reason.value,
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
