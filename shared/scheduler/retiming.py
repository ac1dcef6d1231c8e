"""A calendar that means other times from now on: its planned future moves, what ran stays, and no wall time fires twice.

Two things change what a calendar means: newer time zone data, and other dates in an exclusion list. Both are carried out here
under the calendar's own lock, for all its schedules at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from scheduler.calendar.occurrences import clock_policy, next_occurrence, occurrences
from scheduler.calendar.offsets import Overlap, offset_seconds
from scheduler.calendar.spec import CalendarSpec, Kind, epoch_seconds
from scheduler.calendar.zones import tzdata_version, zone
from scheduler.calendars import Calendar, calendar_spec
from scheduler.materialising import materialise, span
from scheduler.skipped import Standing, record_hold, take_back_later
from scheduler.store.connection import Row, Transaction
from scheduler.timing import Timing


@dataclass(frozen=True, kw_only=True, slots=True)
class Revision:
    """One calendar's change at `now`.

    `kept_through`: what is planned for later is taken back. `done_through`: the occurrences from here to `cursor` are owed, by
    the new meaning; earlier than `kept_through` where the clocks of a zone leapt ahead, later where they went back.
    """

    calendar: Calendar
    spec: CalendarSpec
    kept_through: datetime
    done_through: datetime
    cursor: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Shift:
    """The times that a revision took away and those that it brought, each sorted."""

    old_times: tuple[datetime, ...]
    new_times: tuple[datetime, ...]


def retime_outdated(
    transaction: Transaction, rows: Sequence[Row], faults: dict[int, str], *, now: datetime, retention: timedelta
) -> int:
    """Brings claimed calendars to the time zone data of this process; returns how many mean other times by it.

    `rows`: of `retiming.claim_outdated`. Emits schedule.shifted for each schedule whose times changed. A calendar that can't be
    computed is left as it is, with why in `faults`.
    """
    planned: dict[int, set[datetime]] = {row["id"]: set() for row in rows}
    for each in transaction.run("retiming.planned_later", calendar_ids=list(planned), now=now):
        planned[each["calendar_id"]].add(each["scheduled_for"].astimezone(UTC))
    unchanged: list[Row] = []
    shifted = 0
    for row in rows:
        try:
            revision = _by_zone_data(row, now)
            same = _changes_nothing(revision, row, planned[row["id"]])
        except Exception as error:
            # One calendar's fault, whatever it is, stops no other.
            faults[row["id"]] = f"{type(error).__name__}: {error}"
            continue
        if same:
            unchanged.append(row)
        else:
            shifted += _carry_out(transaction, revision, row, planned[row["id"]], now=now, retention=retention)
    if unchanged:
        offsets = [_offset(calendar_spec(row), row["planned_through"]) for row in unchanged]
        ids = [row["id"] for row in unchanged]
        transaction.run("retiming.stamp", ids=ids, utc_offsets=offsets, tzdata_version=tzdata_version())
    return shifted


def revise(transaction: Transaction, revision: Revision, *, now: datetime, retention: timedelta) -> Shift:
    """Takes back what was planned by the old meaning and plans by the new one; returns the runs' times taken and owed."""
    calendar = revision.calendar
    owed = span(revision.spec, calendar.id, revision.done_through, revision.cursor)
    dropped = transaction.run(
        "retiming.take_back", calendar_id=calendar.id, after=revision.kept_through, kept=list(owed.instants)
    )
    _account_anew(transaction, revision, now)
    transaction.run(
        "retiming.revise",
        id=calendar.id,
        excluded_dates=list(revision.spec.excluded),
        cursor=revision.cursor,
        next_fire_at=owed.next_fire_at,
        utc_offset=owed.utc_offset,
        tzdata_version=tzdata_version(),
        revised_at=max(now, revision.done_through),
    )
    materialise(transaction, [owed], now=now, retention=retention)
    return Shift(
        old_times=tuple(sorted(row["scheduled_for"].astimezone(UTC) for row in dropped)), new_times=owed.instants
    )


def _carry_out(
    transaction: Transaction,
    revision: Revision,
    row: Row,
    planned: set[datetime],
    *,
    now: datetime,
    retention: timedelta,
) -> bool:
    """Whether the calendar means other times now; if so, its tenants are told."""
    moved = revise(transaction, revision, now=now, retention=retention)
    shift = _shift(moved, row["next_fire_at"], next_occurrence(revision.spec, revision.cursor), planned)
    if not shift.old_times and not shift.new_times:
        return False
    transaction.run(
        "retiming.announce",
        calendar_id=row["id"],
        old_times=list(shift.old_times),
        new_times=list(shift.new_times),
        now=now,
    )
    return True


def _by_zone_data(row: Row, now: datetime) -> Revision:
    calendar = Calendar.from_row(row)
    kept_through = min(now, calendar.planned_through)
    done_through = _same_wall(calendar.spec, kept_through, row["utc_offset"])
    return Revision(
        calendar=calendar,
        spec=calendar.spec,
        kept_through=kept_through,
        done_through=done_through,
        cursor=max(calendar.planned_through, done_through),
    )


def _same_wall(spec: CalendarSpec, instant: datetime, old_offset: int | None) -> datetime:
    """Through when the wall times are done that were done at `instant` by the old data, in seconds ahead of UTC.

    A job that follows the real time, every five minutes say, goes on with it: only times of the day are not to come twice.
    """
    new_offset = _offset(spec, instant)
    if (
        old_offset is None
        or old_offset == new_offset
        or spec.kind is Kind.RATE
        or clock_policy(spec)[1] is Overlap.BOTH
    ):
        return instant
    wall = datetime.fromtimestamp(epoch_seconds(instant) + old_offset, UTC).replace(tzinfo=zone(spec.timezone))
    return wall.astimezone(UTC)


def _offset(spec: CalendarSpec, instant: datetime) -> int:
    return offset_seconds(spec.timezone, epoch_seconds(instant))


def _changes_nothing(revision: Revision, row: Row, planned: set[datetime]) -> bool:
    calendar = revision.calendar
    return (
        revision.done_through == revision.kept_through
        and next_occurrence(revision.spec, revision.cursor) == row["next_fire_at"]
        and planned <= set(occurrences(revision.spec, revision.kept_through, calendar.planned_through))
    )


def _shift(moved: Shift, old_next: datetime | None, new_next: datetime | None, planned: set[datetime]) -> Shift:
    """What the tenant is told: runs that moved, and the first time after those."""
    brought = set(moved.new_times) - planned
    old, new = {*moved.old_times, old_next}, {*brought, new_next}
    return Shift(
        old_times=tuple(sorted(each for each in old - new if each)),
        new_times=tuple(sorted(each for each in new - old if each)),
    )


def _account_anew(transaction: Transaction, revision: Revision, now: datetime) -> None:
    """Skipped ranges that reach behind the revision end at it; what is left of a pause is accounted for by the new meaning."""
    calendar, kept = revision.calendar, revision.kept_through
    transaction.run("retiming.drop_later_skips", calendar_id=calendar.id, now=kept)
    for row in transaction.run("retiming.open_skips", calendar_id=calendar.id, now=kept):
        take_back_later(transaction, row["schedule_id"], calendar.spec, kept)
    for row in transaction.run("retiming.held", calendar_id=calendar.id, now=now):
        timing = Timing.from_json(row["timing"])
        held = Standing(
            id=row["id"],
            idle=None,
            active_from=row["held_until"],
            start_at=timing.start_at,
            end_at=timing.end_at,
            held_until=row["held_until"],
            complete=False,
        )
        record_hold(transaction, held, revision.spec, now=kept)
