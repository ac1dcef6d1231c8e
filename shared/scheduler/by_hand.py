"""Runs that a tenant asks for: one now, or those of a stretch of the past. Every other run is the planner's."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import islice
from uuid import UUID

from scheduler.calendar.occurrences import occurrences
from scheduler.calendar.spec import CalendarSpec
from scheduler.calendar.zones import tzdata_version
from scheduler.calendars import calendar_spec
from scheduler.errors import Conflict, InvalidInput, NotFound, Problem
from scheduler.preconditions import ANYHOW, Precondition
from scheduler.runs import id_prefix
from scheduler.schedules import tag_of_version
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Transaction

# Seconds among which a manual run looks for a free one: far more than manual runs are asked for in a second.
_SECONDS = 120
# Runs of one backfill.
MOST_BACKFILLED = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Backfilled:
    """How many occurrences a range holds, and how many of them were made into runs: those that had none."""

    occurrences: int
    made: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ByHand:
    """The use cases, over one database and clock. They take the locks of any change: the calendar, then the schedule."""

    database: Database
    clock: Clock
    retention: timedelta

    def trigger(self, tenant_id: UUID, schedule_id: UUID, *, only: Precondition = ANYHOW) -> UUID:
        """Makes one run at the next whole second that neither has one nor is an occurrence; returns its id.

        An occurrence's second would be taken from the planner. Paused and disabled schedules run too. NotFound;
        PreconditionFailed; Conflict where many runs were asked for at once.
        """
        with self._held(tenant_id, schedule_id, only) as (transaction, spec, now):
            first = now.replace(microsecond=0) + timedelta(seconds=1)
            last = first + timedelta(seconds=_SECONDS)
            taken = set(occurrences(spec, now, last))
            free = [each for number in range(_SECONDS) if (each := first + timedelta(seconds=number)) not in taken]
            rows = transaction.run("by_hand.make_one", id=schedule_id, now=now, **_columns(free))
            if not rows:
                raise Conflict(f"it has a run in each of the next {_SECONDS} seconds")
            run_id: UUID = rows[0]["id"]
            return run_id

    def backfill(
        self,
        tenant_id: UUID,
        schedule_id: UUID,
        since: datetime,
        until: datetime,
        *,
        most: int,
        dry_run: bool,
        only: Precondition = ANYHOW,
    ) -> Backfilled:
        """Makes the runs of [since, until) that are missing, due now, by the calendar that the schedule has now.

        InvalidInput: a range that is not past or older than what is kept, or more than `most` occurrences. NotFound;
        PreconditionFailed.
        """
        with self._held(tenant_id, schedule_id, only) as (transaction, spec, now):
            self._check(transaction, since, until, now)
            before = timedelta(microseconds=1)
            found = list(islice(occurrences(spec, since - before, until - before), most + 1))
            if len(found) > most:
                detail = f"the range holds more than {most} occurrences; take a shorter one, or raise most"
                raise InvalidInput(Problem(pointer="/until", detail=detail))
            if not found:
                return Backfilled(occurrences=0, made=0)
            if dry_run:
                missing = transaction.run("by_hand.count_missing", id=schedule_id, instants=found)[0]["missing"]
                return Backfilled(occurrences=len(found), made=missing)
            made = transaction.change("by_hand.make_missing", id=schedule_id, now=now, **_columns(found))
            return Backfilled(occurrences=len(found), made=made)

    def _check(self, transaction: Transaction, since: datetime, until: datetime, now: datetime) -> None:
        first_day = transaction.run("by_hand.days_there")[0]["first_day"]
        kept_from = max(now - self.retention, datetime.combine(first_day, time(tzinfo=UTC)))
        problems = []
        if since < kept_from:
            detail = f"runs are kept from {kept_from:%Y-%m-%dT%H:%M:%SZ} on"
            problems.append(Problem(pointer="/from", detail=detail))
        if until > now:
            problems.append(Problem(pointer="/until", detail="must not be later than now"))
        if since >= until:
            problems.append(Problem(pointer="/until", detail="must be later than from"))
        if problems:
            raise InvalidInput(*problems)

    @contextmanager
    def _held(
        self, tenant_id: UUID, schedule_id: UUID, only: Precondition
    ) -> Iterator[tuple[Transaction, CalendarSpec, datetime]]:
        """A transaction that holds the schedule's calendar, then the schedule; its calendar; the time under these locks."""
        with self.database.transaction() as transaction:
            rows = transaction.run("by_hand.calendar", tenant_id=tenant_id, id=schedule_id)
            if not rows:
                raise NotFound(f"no schedule {schedule_id}")
            words = {"tenant_id": tenant_id, "id": schedule_id, "calendar_id": rows[0]["id"]}
            locked = transaction.run("by_hand.lock", **words)
            if not locked:
                raise Conflict("it is being changed by others at this moment; try again")
            only.check(tag_of_version(schedule_id, locked[0]["version"]))
            yield transaction, calendar_spec(rows[0]), self.clock(transaction)


def _columns(instants: list[datetime]) -> dict[str, object]:
    return {
        "instants": instants,
        "id_prefixes": [id_prefix(instant) for instant in instants],
        "tzdata_version": tzdata_version(),
    }
