"""What a schedule would do: its next occurrences, with what the clocks do to each."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import assert_never

from scheduler.calendar.grammar import cron_rule
from scheduler.calendar.occurrences import next_occurrence
from scheduler.calendar.offsets import offset_seconds
from scheduler.calendar.spec import CalendarSpec, Kind, epoch_seconds, wall_seconds
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


def preview(spec: CalendarSpec, after: datetime, count: int) -> list[PreviewedOccurrence]:
    """The next occurrences strictly after `after` (aware), at most `count`; fewer where the calendar has no more."""
    return [_previewed(spec, instant) for instant in islice(_instants(spec, after), count)]


def _instants(spec: CalendarSpec, after: datetime) -> Iterator[datetime]:
    following = next_occurrence(spec, after)
    while following is not None:
        yield following
        following = next_occurrence(spec, following)


def _previewed(spec: CalendarSpec, instant: datetime) -> PreviewedOccurrence:
    local = instant.astimezone(zone(spec.timezone))
    return PreviewedOccurrence(
        scheduled_for=instant,
        local=local,
        dst_shifted=not _says(spec, local),
        dst_repeated=local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset(),
    )


def _says(spec: CalendarSpec, local: datetime) -> bool:
    """Whether the calendar names this very wall time."""
    instant = epoch_seconds(local)
    wall = instant + offset_seconds(spec.timezone, instant)
    match spec.kind:
        case Kind.RATE:
            return True
        case Kind.CRON:
            return cron_rule(spec.expression).following(wall) == wall
        case Kind.AT:
            return wall_seconds(spec.expression) == wall
        case _:
            assert_never(spec.kind)
