"""What a schedule would do: its next occurrences, with what the clocks do to each."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import merge
from itertools import islice

from scheduler.calendar.occurrences import next_occurrence, walls_of
from scheduler.calendar.offsets import offset_seconds
from scheduler.calendar.spec import CalendarSpec, Kind, OnExcluded, epoch_seconds
from scheduler.calendar.zones import zone


@dataclass(frozen=True, kw_only=True, slots=True)
class PreviewedOccurrence:
    """One occurrence, un-jittered.

    `scheduled_for` is in UTC and `local` is the same instant in the calendar's zone. `dst_shifted`: its wall time does
    not exist, and it fires after the gap instead. `dst_repeated`: its wall time happens twice; this is one pass.
    """

    scheduled_for: datetime
    local: datetime
    dst_shifted: bool
    dst_repeated: bool
    excluded: bool


def preview(spec: CalendarSpec, after: datetime, count: int) -> list[PreviewedOccurrence]:
    """The next occurrences strictly after `after` (aware), at most `count`; fewer where the calendar has no more."""
    return list(islice(upcoming(spec, after), count))


def upcoming(spec: CalendarSpec, after: datetime) -> Iterator[PreviewedOccurrence]:
    """The occurrences strictly after `after` (aware), in order; excluded ones are among them, flagged."""
    fired = ((instant, spec, False) for instant in _instants(spec, after))
    left_out = replace(spec, on_excluded=OnExcluded.ONLY) if spec.excluded else None
    skipped = ((instant, left_out, True) for instant in _instants(left_out, after)) if left_out else ()
    for instant, calendar, excluded in merge(fired, skipped, key=lambda each: each[0]):
        yield _previewed(calendar, instant, excluded)


def _instants(spec: CalendarSpec, after: datetime) -> Iterator[datetime]:
    following = next_occurrence(spec, after)
    while following is not None:
        yield following
        following = next_occurrence(spec, following)


def _previewed(spec: CalendarSpec, instant: datetime, excluded: bool) -> PreviewedOccurrence:
    local = instant.astimezone(zone(spec.timezone))
    return PreviewedOccurrence(
        scheduled_for=instant,
        local=local,
        dst_shifted=not _says(spec, local),
        dst_repeated=local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset(),
        excluded=excluded,
    )


def _says(spec: CalendarSpec, local: datetime) -> bool:
    """Whether the calendar names this very wall time."""
    instant = epoch_seconds(local)
    wall = instant + offset_seconds(spec.timezone, instant)
    return spec.kind is Kind.RATE or walls_of(spec).following(wall) == wall
