"""The instants that a calendar means: lazily, strictly increasing, in UTC and in whole seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol, assert_never

from scheduler.calendar.grammar import cron_rule
from scheduler.calendar.offsets import BLOCK_SECONDS, Gap, Overlap, Stretch, stretches
from scheduler.calendar.rates import parse_rate
from scheduler.calendar.spec import CalendarSpec, Kind, epoch_seconds, wall_seconds

# Zone data is a guess before 1970, and stored time stamps end before the year 10000.
_FIRST_INSTANT = 0
_LAST_INSTANT = epoch_seconds(datetime(9900, 1, 1, tzinfo=UTC))
# Longer than any day rule waits: 29 February on a weekday takes 40 years at most. What is not found by then is a time
# that a zone's clocks always leave out, under the policy that skips it.
_SEARCH_SECONDS = 50 * 366 * 86_400
# An instant stands for a wall time that is at most so far behind it (the offset, and a day's gap), or ahead of it.
_FARTHEST_BEHIND = 2 * 86_400
_FARTHEST_AHEAD = 15 * 3_600


class _Walls(Protocol):
    """Wall times in order, as seconds since 1970-01-01T00:00:00 on the zone's own clock."""

    def following(self, wall: int) -> int | None:
        """The first one at or after `wall`."""
        ...


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


def _instants(spec: CalendarSpec, low: int, high: int) -> Iterator[int]:
    """Instants in [low, high]."""
    match spec.kind:
        case Kind.RATE:
            period = _period(spec.expression)
            return iter(range(low + (spec.anchor - low) % period, high + 1, period))
        case Kind.CRON:
            rule = cron_rule(spec.expression)
            # A wildcard job fires whenever its wall time really occurs: in both passes, and never in a gap.
            policy = (Gap.SKIP, Overlap.BOTH) if rule.wildcard else (spec.gap, spec.overlap)
            return _on_the_wall(rule, spec.timezone, policy, (low, high))
        case Kind.AT:
            walls = _OneWall(wall=wall_seconds(spec.expression))
            return _on_the_wall(walls, spec.timezone, (spec.gap, spec.overlap), (low, high))
        case _:
            assert_never(spec.kind)


def _on_the_wall(walls: _Walls, zone: str, policy: tuple[Gap, Overlap], span: tuple[int, int]) -> Iterator[int]:
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


def _in_stretch(walls: _Walls, stretch: Stretch, low: int, high: int) -> Iterator[int]:
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
