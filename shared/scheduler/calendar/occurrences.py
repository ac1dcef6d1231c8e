"""The instants that a calendar means: lazily, strictly increasing, in UTC and in whole seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import assert_never

from scheduler.calendar.days import DAY_SECONDS
from scheduler.calendar.exclusions import Walls, dates_of, excluding
from scheduler.calendar.grammar import cron_rule
from scheduler.calendar.offsets import BLOCK_SECONDS, Gap, Overlap, Stretch, offset_seconds, stretches
from scheduler.calendar.rates import parse_rate
from scheduler.calendar.spec import CalendarSpec, Kind, OnExcluded, epoch_seconds, wall_seconds

# Zone data is a guess before 1970, and stored time stamps end before the year 10000.
_FIRST_INSTANT = 0
_LAST_INSTANT = epoch_seconds(datetime(9900, 1, 1, tzinfo=UTC))
# Longer than any day rule waits: 29 February on a weekday takes 40 years at most. What is not found by then is a time
# that a zone's clocks always leave out, under the policy that skips it.
_SEARCH_SECONDS = 50 * 366 * 86_400
# An instant stands for a wall time that is at most so far behind it (the offset, and a day's gap), or ahead of it.
_FARTHEST_BEHIND = 2 * 86_400
_FARTHEST_AHEAD = 15 * 3_600
_FIRST_STEP = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _OneWall:
    wall: int

    def following(self, wall: int) -> int | None:
        return self.wall if wall <= self.wall else None


def occurrences(spec: CalendarSpec, after: datetime, until: datetime) -> Iterator[datetime]:
    """The occurrences strictly after `after` and not later than `until`, both aware; from 1970 to the end of 9899."""
    low = max(epoch_seconds(after) + 1, _FIRST_INSTANT)
    high = min(epoch_seconds(until), _LAST_INSTANT)
    return (datetime.fromtimestamp(instant, UTC) for instant in _instants(spec, low, high))


def next_occurrence(spec: CalendarSpec, after: datetime) -> datetime | None:
    """The first occurrence strictly after `after`; None where there is none (for cron, within fifty years)."""
    low = max(epoch_seconds(after) + 1, _FIRST_INSTANT)
    high = min(low + _SEARCH_SECONDS, _LAST_INSTANT) if spec.kind is Kind.CRON else _LAST_INSTANT
    found = next(_instants(spec, low, high), None)
    return None if found is None else datetime.fromtimestamp(found, UTC)


def period_seconds(spec: CalendarSpec) -> int | None:
    """A rate's period; None for the other kinds, whose intervals vary."""
    return _period(spec.expression) if spec.kind is Kind.RATE else None


def count_occurrences(spec: CalendarSpec, after: datetime, until: datetime) -> int:
    """How many lie in (after, until]; about a second for a year of minutes."""
    low = max(epoch_seconds(after) + 1, _FIRST_INSTANT)
    high = min(epoch_seconds(until), _LAST_INSTANT)
    if spec.kind is Kind.RATE and not spec.excluded and spec.on_excluded is not OnExcluded.ONLY:
        period = _period(spec.expression)
        return (high - spec.anchor) // period - (low - 1 - spec.anchor) // period if low <= high else 0
    return sum(1 for _ in _instants(spec, low, high))


def last_occurrence(spec: CalendarSpec, after: datetime, until: datetime) -> datetime | None:
    """The last one in (after, until]: looked for backwards, in ever longer steps."""
    step, end = _FIRST_STEP, until
    while end > after:
        start = max(after, end - step)
        found = None
        for instant in occurrences(spec, start, end):
            found = instant
        if found is not None:
            return found
        step, end = step * 2, start
    return None


def walls_of(spec: CalendarSpec) -> Walls:
    """The wall times that a cron or an `at` names, excluded dates taken into account."""
    walls: Walls = _OneWall(wall=wall_seconds(spec.expression)) if spec.kind is Kind.AT else cron_rule(spec.expression)
    return excluding(walls, spec.excluded, spec.on_excluded)


def clock_policy(spec: CalendarSpec) -> tuple[Gap, Overlap]:
    """What applies when the clocks change: a wildcard job fires whenever its wall time really occurs, and never in a gap."""
    if spec.kind is Kind.CRON and cron_rule(spec.expression).wildcard:
        return Gap.SKIP, Overlap.BOTH
    return spec.gap, spec.overlap


def _instants(spec: CalendarSpec, low: int, high: int) -> Iterator[int]:
    """Instants in [low, high]."""
    match spec.kind:
        case Kind.RATE:
            return _at_a_rate(spec, low, high)
        case Kind.CRON | Kind.AT:
            return _on_the_wall(walls_of(spec), spec.timezone, clock_policy(spec), (low, high))
        case _:
            assert_never(spec.kind)


def _at_a_rate(spec: CalendarSpec, low: int, high: int) -> Iterator[int]:
    period = _period(spec.expression)
    instants = range(low + (spec.anchor - low) % period, high + 1, period)
    if spec.on_excluded is OnExcluded.ONLY:
        return _on_dates(instants, spec)
    return _off_dates(instants, spec) if spec.excluded else iter(instants)


def _on_dates(instants: range, spec: CalendarSpec) -> Iterator[int]:
    """Those whose local date is excluded: none is looked at farther from such a date than clocks go."""
    for day in sorted(spec.excluded):
        midnight = epoch_seconds(datetime(day.year, day.month, day.day, tzinfo=UTC))
        near = range(midnight - _FARTHEST_AHEAD, midnight + DAY_SECONDS + _FARTHEST_AHEAD)
        first = max(0, -((instants.start - near.start) // instants.step))
        for instant in instants[first:]:
            if instant >= near.stop:
                break
            if (instant + offset_seconds(spec.timezone, instant)) // DAY_SECONDS == midnight // DAY_SECONDS:
                yield instant


def _off_dates(instants: range, spec: CalendarSpec) -> Iterator[int]:
    """Those whose local date is not excluded. Most of an excluded day is leapt over, however many there are."""
    dates = dates_of(spec.excluded)
    place = 0
    while place < len(instants):
        instant = instants[place]
        wall = instant + offset_seconds(spec.timezone, instant)
        if wall // DAY_SECONDS not in dates:
            yield instant
            place += 1
        else:
            left = dates.allowed(wall // DAY_SECONDS) * DAY_SECONDS - wall - _FARTHEST_BEHIND
            place += max(left // instants.step, 1)


def _on_the_wall(walls: Walls, zone: str, policy: tuple[Gap, Overlap], span: tuple[int, int]) -> Iterator[int]:
    """Walks the zone's stretches in order, so that the instants come out in order whatever the clocks did."""
    low, high = span
    while low <= high:
        block = low // BLOCK_SECONDS
        for stretch in stretches(zone, *policy, block):
            if stretch.end > low:
                yield from _in_stretch(walls, stretch, low, high)
        block_end = (block + 1) * BLOCK_SECONDS
        wall = walls.following(block_end - _FARTHEST_BEHIND)
        if wall is None:
            return
        low = max(block_end, wall - _FARTHEST_AHEAD)


def _in_stretch(walls: Walls, stretch: Stretch, low: int, high: int) -> Iterator[int]:
    instant = max(stretch.start, low)
    if stretch.missing and stretch.start >= low:
        first_missing = stretch.start + stretch.offset - stretch.missing
        wall = walls.following(first_missing)
        if wall is not None and wall < first_missing + stretch.missing:
            if stretch.start <= high:
                yield stretch.start
            instant += 1
    end = min(stretch.end, high + 1)
    wall = walls.following(instant + stretch.offset)
    while wall is not None and wall - stretch.offset < end:
        yield wall - stretch.offset
        wall = walls.following(wall + 1)


@lru_cache(maxsize=4096)
def _period(expression: str) -> int:
    return parse_rate(expression)
