"""A zone as stretches of constant offset, already cut to what a policy for clock changes lets fire."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo

from scheduler.calendar.zones import forget_with_zones, zone

# Stretches are kept in blocks: small ones, so that a search that jumps over years reads no more than where it lands.
BLOCK_SECONDS = 8 * 86_400
# No zone has changed its offset twice within six days since 1970 (a test reads the zone files), so a look every six days
# sees each change.
_PROBE_SECONDS = 6 * 86_400
# Beyond any block and what is looked at around it: the first stretch has no beginning of interest, the last no end.
_FAR = 1_000 * 86_400
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
    place = zone(zone_name)
    # A change beyond a block still cuts what lies inside it.
    changes = list(_changes(place, start - _LARGEST_CHANGE, end + _LARGEST_CHANGE))
    if not changes:
        return (Stretch(start=start, end=end, offset=_offset(place, start), missing=0),)
    return tuple(
        Stretch(
            start=max(stretch.start, start),
            end=min(stretch.end, end),
            offset=stretch.offset,
            missing=stretch.missing if stretch.start >= start else 0,
        )
        for stretch in _whole_stretches(changes, gap, overlap)
        if stretch.start < end and stretch.end > start
    )


forget_with_zones(stretches.cache_clear)


def offset_seconds(zone_name: str, instant: int) -> int:
    """What to add to this instant's seconds since the epoch for the zone's wall clock."""
    return _offset(zone(zone_name), instant)


def _whole_stretches(changes: list[_Change], gap: Gap, overlap: Overlap) -> Iterator[Stretch]:
    """The stretches before, between and after the changes, without the passes that must not fire."""
    start, offset, missing = changes[0].at - _FAR, changes[0].before, 0
    for change in changes:
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
    yield Stretch(start=start, end=changes[-1].at + _FAR, offset=offset, missing=missing)


def _changes(place: ZoneInfo, start: int, end: int) -> Iterator[_Change]:
    """The changes in (start, end], in order."""
    before = _offset(place, start)
    for low in range(start, end, _PROBE_SECONDS):
        high = min(low + _PROBE_SECONDS, end)
        after = _offset(place, high)
        if after != before:
            yield _Change(at=_first_with(place, after, low, high), before=before, after=after)
            before = after


def _first_with(place: ZoneInfo, offset: int, low: int, high: int) -> int:
    """The first instant in (low, high] with the offset that `high` has and `low` has not."""
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(place, middle) == offset:
            high = middle
        else:
            low = middle
    return high


def _offset(place: ZoneInfo, instant: int) -> int:
    offset = datetime.fromtimestamp(instant, place).utcoffset()
    return 0 if offset is None else offset.days * 86_400 + offset.seconds
