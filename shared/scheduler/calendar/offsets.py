"""A zone as stretches of constant offset, already cut to what a policy for clock changes lets fire."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache

from scheduler.calendar.zones import zone

# Stretches are kept in blocks of about a year, so that a zone without changes has an end to look at.
BLOCK_SECONDS = 366 * 86_400
# No zone has changed its offset twice within six days since 1970 (a test reads the zone files), so a look every
# three days sees each change.
_PROBE_SECONDS = 3 * 86_400
# The most that a clock has jumped since 1970: a day, at the date line.
_LARGEST_CHANGE = 86_400


class Gap(StrEnum):
    """What a fixed time does on a day that lacks it: fires at the first instant after the gap, or not at all."""

    SHIFT = "shift"
    SKIP = "skip"


class Overlap(StrEnum):
    """Which pass of a wall time that happens twice fires."""

    FIRST = "first"
    LAST = "last"
    BOTH = "both"


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """Instants [start, end) in which the wall is the instant + `offset`; all four in seconds.

    `missing`: so many wall seconds just before the first one do not exist, and move to `start`.
    """

    start: int
    end: int
    offset: int
    missing: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Change:
    at: int
    before: int
    after: int


@lru_cache(maxsize=8192)
def stretches(zone_name: str, gap: Gap, overlap: Overlap, block: int) -> tuple[Stretch, ...]:
    """The stretches of one block of time, in order, without the passes of a repeated wall time that must not fire."""
    start, end = block * BLOCK_SECONDS, (block + 1) * BLOCK_SECONDS
    whole = _whole_stretches(zone_name, gap, overlap, (start - _LARGEST_CHANGE, end + _LARGEST_CHANGE))
    return tuple(
        Stretch(
            start=max(stretch.start, start),
            end=min(stretch.end, end),
            offset=stretch.offset,
            missing=stretch.missing if stretch.start >= start else 0,
        )
        for stretch in whole
        if stretch.start < end and stretch.end > start
    )


def _whole_stretches(zone_name: str, gap: Gap, overlap: Overlap, span: tuple[int, int]) -> Iterator[Stretch]:
    """The stretches of a span, wide enough that a change beyond a block still cuts what lies inside it."""
    start, offset, missing = span[0], offset_seconds(zone_name, span[0]), 0
    for change in _changes(zone_name, span):
        repeated = max(change.before - change.after, 0)
        yield Stretch(
            start=start,
            end=change.at - (repeated if overlap is Overlap.LAST else 0),
            offset=offset,
            missing=missing,
        )
        start = change.at + (repeated if overlap is Overlap.FIRST else 0)
        offset = change.after
        missing = max(change.after - change.before, 0) if gap is Gap.SHIFT else 0
    yield Stretch(start=start, end=span[1], offset=offset, missing=missing)


def _changes(zone_name: str, span: tuple[int, int]) -> Iterator[_Change]:
    start, end = span
    before = offset_seconds(zone_name, start)
    for low in range(start, end, _PROBE_SECONDS):
        high = min(low + _PROBE_SECONDS, end)
        after = offset_seconds(zone_name, high)
        if after != before:
            yield _Change(at=_first_with(zone_name, after, low, high), before=before, after=after)
            before = after


def _first_with(zone_name: str, offset: int, low: int, high: int) -> int:
    """The first instant in (low, high] with the offset that `high` has and `low` has not."""
    while high - low > 1:
        middle = (low + high) // 2
        if offset_seconds(zone_name, middle) == offset:
            high = middle
        else:
            low = middle
    return high


def offset_seconds(zone_name: str, instant: int) -> int:
    """What to add to this instant's seconds since the epoch for the zone's wall clock."""
    offset = datetime.fromtimestamp(instant, zone(zone_name)).utcoffset()
    return 0 if offset is None else offset.days * 86_400 + offset.seconds
