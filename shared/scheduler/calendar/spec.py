"""A calendar: what a tenant's timing means, validated and in one spelling, so that equal calendars are one value."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from scheduler.calendar.grammar import parse_cron
from scheduler.calendar.offsets import Gap, Overlap
from scheduler.calendar.rates import format_rate, parse_rate
from scheduler.calendar.second_reader import confirm
from scheduler.calendar.text import quoted
from scheduler.calendar.zones import validate
from scheduler.errors import InvalidExpression

__all__ = [
    "CalendarSpec",
    "Gap",
    "Kind",
    "OnExcluded",
    "Overlap",
    "at",
    "cron",
    "epoch_seconds",
    "excluded_only",
    "rate",
    "wall_seconds",
    "without_dates",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_WALL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\Z", re.ASCII)
# One-offs stay inside the years for which zones are known and time stamps can be stored.
_FIRST_YEAR, _LAST_YEAR = 1970, 9899


class Kind(StrEnum):
    """What the expression is."""

    CRON = "cron"
    RATE = "rate"
    AT = "at"


class OnExcluded(StrEnum):
    """What an occurrence on an excluded date does: nothing, or it moves to the next date that is not excluded.

    `only` turns it round, to list what a calendar leaves out: nothing happens but on the excluded dates.
    """

    SKIP = "skip"
    NEXT_DAY = "next_day"
    ONLY = "only"


@dataclass(frozen=True, kw_only=True, slots=True)
class CalendarSpec:
    """One distinct calendar. Made by `cron`, `rate` or `at`; equal meanings are equal values.

    `anchor`: for rates, seconds since the epoch of any occurrence, modulo the period; 0 for cron and at.
    `excluded`: local dates, sorted, on which `on_excluded` decides; a rate knows its zone for their sake alone.
    """

    kind: Kind
    expression: str
    timezone: str
    gap: Gap
    overlap: Overlap
    anchor: int
    excluded: tuple[date, ...] = ()
    on_excluded: OnExcluded = OnExcluded.SKIP


def cron(expression: str, timezone: str, *, gap: Gap = Gap.SHIFT, overlap: Overlap = Overlap.FIRST) -> CalendarSpec:
    """A five-field cron expression on a zone's wall clock. InvalidExpression for either text."""
    rule = parse_cron(expression)
    confirm(rule.expression)
    validate(timezone)
    return CalendarSpec(
        kind=Kind.CRON, expression=rule.expression, timezone=timezone, gap=gap, overlap=overlap, anchor=0
    )


def rate(text: str, first: datetime) -> CalendarSpec:
    """Every so much real time, `first` (aware) among the instants; its fraction of a second, if any, is rounded up."""
    period = parse_rate(text)
    return CalendarSpec(
        kind=Kind.RATE,
        expression=format_rate(period),
        timezone="UTC",
        gap=Gap.SHIFT,
        overlap=Overlap.FIRST,
        anchor=(epoch_seconds(first) + bool(first.microsecond)) % period,
    )


def at(text: str, timezone: str, *, gap: Gap = Gap.SHIFT, overlap: Overlap = Overlap.FIRST) -> CalendarSpec:
    """One wall time, `YYYY-MM-DDTHH:MM:SS`, in a zone. Under the policies it may be no instant, or two."""
    wall = _parse_wall(text)
    validate(timezone)
    return CalendarSpec(
        kind=Kind.AT, expression=wall.isoformat(), timezone=timezone, gap=gap, overlap=overlap, anchor=0
    )


def without_dates(spec: CalendarSpec, dates: Collection[date], on_excluded: OnExcluded, timezone: str) -> CalendarSpec:
    """The calendar without these local dates of a zone. InvalidExpression: a rate has no wall time to move to another day."""
    if not dates:
        return spec
    if spec.kind is Kind.RATE:
        validate(timezone)
        if on_excluded is OnExcluded.NEXT_DAY:
            raise InvalidExpression("on_excluded", "a rate has no wall time to keep on another day; write skip")
        spec = replace(spec, timezone=timezone)
    return replace(spec, excluded=tuple(sorted(set(dates))), on_excluded=on_excluded)


def excluded_only(spec: CalendarSpec) -> CalendarSpec:
    """The calendar of what is left out: its occurrences on excluded dates that happen on no other day instead."""
    dates = spec.excluded if spec.on_excluded is OnExcluded.SKIP else ()
    return replace(spec, excluded=dates, on_excluded=OnExcluded.ONLY)


def wall_seconds(expression: str) -> int:
    """A canonical `at` expression as seconds since 1970-01-01T00:00:00 on the zone's own clock."""
    return epoch_seconds(datetime.fromisoformat(expression).replace(tzinfo=UTC))


def epoch_seconds(instant: datetime) -> int:
    """Whole seconds since the epoch, rounded down. ValueError for a naive value."""
    if instant.tzinfo is None:
        raise ValueError(f"an aware datetime is needed, not {instant!r}")
    return (instant - _EPOCH) // _SECOND


def _parse_wall(text: str) -> datetime:
    if not _WALL.match(text):
        raise InvalidExpression("at", f"{quoted(text)} is not a wall time; {_how_to_write(text)}")
    try:
        wall = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidExpression("at", f"{quoted(text)} is no date and time: {error}") from None
    if not _FIRST_YEAR <= wall.year <= _LAST_YEAR:
        raise InvalidExpression("at", f"the year is out of range; write {_FIRST_YEAR} to {_LAST_YEAR}")
    return wall


def _how_to_write(text: str) -> str:
    if re.search(r"(?:Z|[+-][0-9]{2}:?[0-9]{2})\Z", text[-8:], re.IGNORECASE) and "T" in text.upper():
        return "write it without an offset, as in 2026-12-24T18:00:00, and the zone in `timezone`"
    return "write it as 2026-12-24T18:00:00, in whole seconds"
