"""From occurrences to runs: the one statement that makes them, and what becomes of the others, for all who plan."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Self
from uuid import UUID

from scheduler.calendar.occurrences import next_occurrence, occurrences
from scheduler.calendar.offsets import offset_seconds
from scheduler.calendar.spec import CalendarSpec, epoch_seconds, excluded_only
from scheduler.calendar.zones import tzdata_version
from scheduler.runs import id_prefix
from scheduler.store.connection import Transaction

# What a jitter can't exceed anyway, where no further occurrence bounds it.
_MOST_ROOM = 86_400


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """One calendar's occurrences in a stretch of time, the first one after it, and those that its excluded dates leave out.

    `utc_offset`: the zone's wall clock minus UTC at the `end` of the stretch, in seconds.
    """

    calendar_id: int
    calendar: CalendarSpec
    instants: tuple[datetime, ...]
    excluded: tuple[datetime, ...]
    end: datetime
    next_fire_at: datetime | None
    utc_offset: int

    def head(self, count: int) -> Self:
        """The stretch up to its `count`-th occurrence, of which it has more."""
        end = self.instants[count - 1]
        return replace(
            self,
            instants=self.instants[:count],
            excluded=tuple(instant for instant in self.excluded if instant <= end),
            end=end,
            next_fire_at=self.instants[count],
            utc_offset=offset_seconds(self.calendar.timezone, epoch_seconds(end)),
        )


def span(
    calendar: CalendarSpec, calendar_id: int, after: datetime, until: datetime, *, most: int | None = None
) -> Span:
    """The occurrences of `calendar` in (after, until]; where there are more than `most`, it ends with that one."""
    instants = tuple(islice(occurrences(calendar, after, until), most))
    end = instants[-1] if most and len(instants) == most else max(after, until)
    return Span(
        calendar_id=calendar_id,
        calendar=calendar,
        instants=instants,
        excluded=tuple(occurrences(excluded_only(calendar), after, end)) if calendar.excluded else (),
        end=end,
        next_fire_at=next_occurrence(calendar, end),
        utc_offset=offset_seconds(calendar.timezone, epoch_seconds(end)),
    )


def materialise(
    transaction: Transaction,
    spans: Sequence[Span],
    *,
    now: datetime,
    retention: timedelta,
    schedule_id: UUID | None = None,
    later: Sequence[datetime] = (),
) -> int:
    """Makes the runs of `spans`, for all active schedules of their calendars or for one; returns how many are new.

    `later`: due occurrences behind a single span, which the misfire policies prefer to those within.
    """
    _record_excluded(transaction, spans, now, schedule_id)
    filled = [one for one in spans if one.instants]
    if not filled:
        return 0
    limited = transaction.run(
        "planning.lock_limited", calendar_ids=[one.calendar_id for one in filled], schedule_id=schedule_id
    )
    pairs = [(one.calendar_id, instant) for one in filled for instant in one.instants]
    rows = transaction.run(
        "planning.materialise",
        calendar_ids=[calendar_id for calendar_id, _ in pairs],
        instants=[instant for _, instant in pairs],
        earliest=min(instant for _, instant in pairs),
        latest=max(instant for _, instant in pairs),
        id_prefixes=[id_prefix(instant) for _, instant in pairs],
        rooms=[room for one in filled for room in _rooms(one)],
        schedule_id=schedule_id,
        later=list(later),
        now=now,
        oldest=now - retention,
        some_late=any(instant < now for _, instant in pairs),
        some_limited=bool(limited),
        tzdata_version=tzdata_version(),
    )
    return int(rows[0]["made"])


def advance(transaction: Transaction, spans: Sequence[Span]) -> None:
    """Moves the cursors of these calendars to where their spans end; never back."""
    transaction.run(
        "planning.advance",
        ids=[one.calendar_id for one in spans],
        next_fire_ats=[one.next_fire_at for one in spans],
        ends=[one.end for one in spans],
        utc_offsets=[one.utc_offset for one in spans],
        tzdata_version=tzdata_version(),
    )


def _rooms(one: Span) -> list[int]:
    """For each occurrence the seconds to the next one, less one: the most that its jitter may be."""
    following = [*one.instants, one.next_fire_at]
    return [
        min(int((after - before).total_seconds()) - 1, _MOST_ROOM) if before and after else _MOST_ROOM
        for before, after in pairwise(following)
    ]


def _record_excluded(transaction: Transaction, spans: Sequence[Span], now: datetime, schedule_id: UUID | None) -> None:
    """One skipped range for each schedule and stretch of excluded occurrences without a run in between."""
    found = [
        (one.calendar_id, instant, sum(run < instant for run in one.instants))
        for one in spans
        for instant in one.excluded
    ]
    if found:
        transaction.run(
            "skipped.record_excluded",
            calendar_ids=[calendar_id for calendar_id, _, _ in found],
            instants=[instant for _, instant, _ in found],
            stretches=[stretch for _, _, stretch in found],
            schedule_id=schedule_id,
            now=now,
        )
