"""Calendar rows: found or made for a timing, held still for a change, and read back as what they mean."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Self
from uuid import UUID

from scheduler.calendar.occurrences import next_occurrence
from scheduler.calendar.spec import CalendarSpec, Gap, Kind, OnExcluded, Overlap
from scheduler.calendar.zones import tzdata_version
from scheduler.errors import InvalidInput, Problem
from scheduler.store.connection import Row, Transaction
from scheduler.timing import Exclude, Timing
from scheduler.webhook.pointer import reference_token


@dataclass(frozen=True, kw_only=True, slots=True)
class Calendar:
    """A calendar row under our lock; `made` by this transaction, so that no other sees it yet.

    `set_aside`: its times could not be computed, and wait for a person.
    """

    id: int
    spec: CalendarSpec
    planned_through: datetime
    set_aside: bool
    made: bool = False

    @classmethod
    def from_row(cls, row: Row, *, made: bool = False) -> Self:
        """The calendar of a row with its cursor."""
        return cls(
            id=row["id"],
            spec=calendar_spec(row),
            planned_through=row["planned_through"],
            set_aside=row["set_aside_at"] is not None,
            made=made,
        )


def calendar_spec(row: Row) -> CalendarSpec:
    """The calendar that a row of the table describes."""
    return CalendarSpec(
        kind=Kind(row["kind"]),
        expression=row["expression"],
        timezone=row["timezone"],
        gap=Gap(row["gap"]),
        overlap=Overlap(row["overlap"]),
        anchor=row["anchor"],
        excluded=tuple(row["excluded_dates"]),
        on_excluded=OnExcluded(row["on_excluded"]),
    )


def lock_calendars(
    transaction: Transaction, tenant_id: UUID, timing: Timing, now: datetime, *, old: tuple[Timing, int] | None
) -> tuple[Calendar, Calendar]:
    """The new and the old calendar, held still until the end of the transaction: the first locks that it takes.

    `old`: the timing and the calendar that the schedule has, if there is one. Raises InvalidInput for a timing that has none.
    """
    if old is not None and timing.same_calendar(old[0]):
        [row] = transaction.run("schedules.lock_calendars", ids=[old[1]])
        return Calendar.from_row(row), Calendar.from_row(row)
    while True:
        made, new_id = _ensure(transaction, tenant_id, timing, now)
        old_id = old[1] if old else new_id
        rows = {row["id"]: row for row in transaction.run("schedules.lock_calendars", ids=[new_id, old_id])}
        # One that was retired while we waited for it has given up its key: there is another one now, or we make it.
        if rows[new_id]["retired_at"] is None:
            return Calendar.from_row(rows[new_id], made=made), Calendar.from_row(rows[old_id])


def spec_of(transaction: Transaction, tenant_id: UUID, timing: Timing, now: datetime) -> CalendarSpec:
    """What a timing means for a tenant at `now`, with no row made of it. InvalidInput."""
    _, listed = _find_lists(transaction, tenant_id, timing.exclude)
    return timing.calendar(now, listed)


def _ensure(transaction: Transaction, tenant_id: UUID, timing: Timing, now: datetime) -> tuple[bool, int]:
    """Whether this transaction made the row, and its id. Waits for another transaction that is just making it."""
    lists, listed = _find_lists(transaction, tenant_id, timing.exclude)
    spec = timing.calendar(now, listed)
    key: dict[str, object] = {
        "kind": spec.kind.value,
        "expression": spec.expression,
        "timezone": spec.timezone,
        "gap": spec.gap.value,
        "overlap": spec.overlap.value,
        "anchor": spec.anchor,
        "exclusion_key": _key(timing.exclude, lists),
    }
    whole = key | {
        "now": now,
        "next_fire_at": next_occurrence(spec, now),
        "tzdata_version": tzdata_version(),
        "own_dates": sorted(set(timing.exclude.dates)),
        "exclusion_lists": lists,
        "excluded_dates": list(spec.excluded),
        "on_excluded": timing.exclude.on_excluded.value,
    }
    while True:
        made = transaction.run("schedules.add_calendar", **whole)
        rows = made or transaction.run("schedules.find_calendar", **key)
        # None where one that was there has been retired between the two statements.
        if rows:
            return bool(made), rows[0]["id"]


def _find_lists(transaction: Transaction, tenant_id: UUID, exclude: Exclude) -> tuple[list[UUID], set[date]]:
    """What the names of a timing's lists stand for at this moment: their ids, sorted, and their dates."""
    if not exclude.lists:
        return [], set()
    rows = {
        row["name"]: row for row in transaction.run("exclusions.hold", tenant_id=tenant_id, names=list(exclude.lists))
    }
    missing = [
        Problem(pointer=f"/exclude/lists/{reference_token(str(place))}", detail=f"there is no exclusion list {name!a}")
        for place, name in enumerate(exclude.lists)
        if name not in rows
    ]
    if missing:
        raise InvalidInput(*missing)
    return sorted(row["id"] for row in rows.values()), {each for row in rows.values() for each in row["dates"]}


def _key(exclude: Exclude, lists: Sequence[UUID]) -> str:
    """What is excluded, as one short text: equal for equal dates, lists and policies."""
    if not exclude.dates and not lists:
        return ""
    whole = [sorted(day.isoformat() for day in set(exclude.dates)), list(map(str, lists)), exclude.on_excluded.value]
    return hashlib.sha256(json.dumps(whole).encode()).hexdigest()
