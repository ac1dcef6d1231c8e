"""The audit: recomputes what was owed, and says what is neither a run nor inside a skipped range. It must find nothing.

It knows neither cursors nor misfires nor how planning is done: only what the versions of the schedules say, what their
calendars mean, and what is there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from scheduler.calendar.occurrences import occurrences
from scheduler.calendars import calendar_spec
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Row

# Each occurrence is audited twice, by two daily audits; nothing so young has been dropped.
PERIOD = timedelta(hours=48)
# Occurrences looked for in one statement, and calendars read in one.
_OCCURRENCES = 20_000
_CALENDARS = 1_000
# Of what is missing, so many are named.
_NAMED = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """An occurrence that was owed and is nowhere."""

    schedule_id: UUID
    scheduled_for: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """How many occurrences of calendars were looked at, and what is missing: the first hundred, of `missing` in all."""

    looked_at: int
    missing: int
    first: tuple[Missing, ...]
    complete: bool


def audit(database: Database, clock: Clock, *, more_time: Callable[[], bool], period: timedelta = PERIOD) -> Audit:
    """Audits the last `period` of all calendars, in statements of bounded size; not `complete` where time ran out."""
    with database.transaction() as transaction:
        now = clock(transaction)
    looked_at, found, complete = 0, list[Missing](), True
    for pairs in _batches(_occurrences(database, now, period)):
        if not more_time():
            complete = False
            break
        looked_at += len(pairs)
        with database.transaction() as transaction:
            rows = transaction.run(
                "audit.find_missing",
                calendar_ids=[calendar_id for calendar_id, _ in pairs],
                instants=[instant for _, instant in pairs],
            )
        found += [Missing(schedule_id=row["schedule_id"], scheduled_for=row["scheduled_for"]) for row in rows]
    return Audit(looked_at=looked_at, missing=len(found), first=tuple(found[:_NAMED]), complete=complete)


def _occurrences(database: Database, now: datetime, period: timedelta) -> Iterator[tuple[int, datetime]]:
    """What the calendars' cursors have passed, calendar by calendar, since they mean what they mean now."""
    for row in _calendars(database, now - period):
        since = max(now - period, row["revised_at"] or now - period)
        for instant in occurrences(calendar_spec(row), since, min(now, row["planned_through"])):
            yield row["id"], instant


def _calendars(database: Database, since: datetime) -> Iterator[Row]:
    last = 0
    while True:
        with database.transaction() as transaction:
            rows = transaction.run("audit.calendars", after=last, since=since, most=_CALENDARS)
        yield from rows
        if len(rows) < _CALENDARS:
            return
        last = rows[-1]["id"]


def _batches(pairs: Iterator[tuple[int, datetime]]) -> Iterator[list[tuple[int, datetime]]]:
    batch: list[tuple[int, datetime]] = []
    for pair in pairs:
        batch.append(pair)
        if len(batch) == _OCCURRENCES:
            yield batch
            batch = []
    if batch:
        yield batch
