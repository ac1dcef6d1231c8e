"""What a tenant may have and do: schedules, their smallest interval, payload bytes, requests a second."""

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

from scheduler import tenant_rows
from scheduler.calendar.occurrences import next_occurrence
from scheduler.errors import InvalidInput, LimitExceeded, NoTenant, Problem
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Transaction
from scheduler.timing import Timing

# Occurrences between which the smallest interval is looked for: a day of a cron that fires each quarter of an hour.
_LOOKED_AT = 100
_A_YEARS_START = datetime(2024, 1, 1, tzinfo=UTC)
# No cron fires more often (its grammar has minutes), so that a limit of this or less needs no look.
_CRON_SECONDS = 60
# How long requests taken for a tenant may lie in a sandbox, and for how many tenants.
_KEPT_SECONDS = 1.0
_TENANTS = 1_000
_USAGE = timedelta(hours=24)


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """A tenant's limits. The interval is in seconds, between two occurrences of one schedule."""

    schedules: int = 10_000
    interval_seconds: int = 10
    payload_bytes: int = 262_144
    requests_per_second: int = 50

    def check(self, timing: Timing, payload: bytes | None) -> None:
        """InvalidInput where a schedule would fire more often or send more than the tenant may."""
        problems = []
        if payload is not None and len(payload) > self.payload_bytes:
            detail = f"{len(payload)} bytes; your limit is {self.payload_bytes}"
            problems.append(Problem(pointer="/payload", detail=detail))
        if timing.at is None and (timing.rate or self.interval_seconds > _CRON_SECONDS):
            seconds = _smallest_interval(timing)
            if seconds is not None and seconds < self.interval_seconds:
                detail = f"fires {seconds} seconds apart; your limit is {self.interval_seconds} at least"
                problems.append(Problem(pointer="/rate" if timing.rate else "/cron", detail=detail))
        if problems:
            raise InvalidInput(*problems)


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What a tenant has and did. `runs`: of the last 24 hours, by state."""

    limits: Limits
    schedules: int
    runs: dict[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Admitted:
    """One request that may be carried out, and how many more may follow at this moment."""

    limits: Limits
    remaining: int


class TooManyRequests(LimitExceeded):
    """The tenant has made all the requests that it may in this second."""

    def __init__(self, limits: Limits, *, retry_seconds: int) -> None:
        super().__init__(f"more than {limits.requests_per_second} requests a second", retry_seconds=retry_seconds)
        self.limits = limits


@dataclass(kw_only=True, slots=True)
class _Taken:
    """Requests that this process took for a tenant; good until `ends`, in monotonic seconds."""

    limits: Limits
    requests: int
    left_there: int
    ends: float


class Admission:
    """Counts the requests of tenants, over all sandboxes.

    Each takes a tenth of a second's requests at a time out of the tenant's bucket in the database: most requests of a busy
    tenant write nothing. What a sandbox took and did not use in a second is lost, which is on the safe side.
    """

    def __init__(self, database: Database, clock: Clock, monotonic: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock
        self._monotonic = monotonic
        self._taken: OrderedDict[UUID, _Taken] = OrderedDict()

    def admit(self, tenant_id: UUID) -> Admitted:
        """Counts one request. TooManyRequests where the tenant has made all that it may in this second; NoTenant."""
        taken = self._taken.get(tenant_id)
        if taken is None or taken.requests < 1 or taken.ends < self._monotonic():
            taken = self._take(tenant_id)
        taken.requests -= 1
        return Admitted(limits=taken.limits, remaining=taken.requests + taken.left_there)

    def _take(self, tenant_id: UUID) -> _Taken:
        with self._database.transaction() as transaction:
            transaction.run("limits.hurry")
            rows = transaction.run("limits.take", tenant_id=tenant_id, now=self._clock(transaction))
            if not rows:
                raise NoTenant(tenant_id)
            limits = limits_of(transaction, tenant_id)
        granted, tokens = rows[0]["granted"], rows[0]["tokens"]
        if granted < 1:
            wait = math.ceil((1 - tokens) / limits.requests_per_second)
            raise TooManyRequests(limits, retry_seconds=max(1, wait))
        ends = self._monotonic() + _KEPT_SECONDS
        taken = _Taken(limits=limits, requests=granted, left_there=int(tokens), ends=ends)
        self._taken[tenant_id] = taken
        while len(self._taken) > _TENANTS:
            self._taken.popitem(last=False)
        return taken


def limits_of(transaction: Transaction, tenant_id: UUID) -> Limits:
    """The tenant's limits; the default ones for a tenant that is not there."""
    rows = transaction.run("limits.get", tenant_id=tenant_id)
    if not rows:
        return Limits()
    return Limits(
        schedules=rows[0]["max_schedules"],
        interval_seconds=rows[0]["min_interval_seconds"],
        payload_bytes=rows[0]["max_payload_bytes"],
        requests_per_second=rows[0]["requests_per_second"],
    )


def make_room(transaction: Transaction, tenant_id: UUID) -> None:
    """LimitExceeded where the tenant has as many schedules as it may; else no other creation passes before this one ends.

    NoTenant. To be called when the calendars are locked: the tenant's row is locked behind them.
    """
    most = tenant_rows.hold(transaction, tenant_id)
    [counted] = transaction.run("limits.count_schedules", tenant_id=tenant_id, most=most)
    if counted["schedules"] >= most:
        detail = f"you have {counted['schedules']} schedules, as many as you may; delete one, or ask for more"
        raise LimitExceeded(detail, retry_seconds=60)


def usage(database: Database, clock: Clock, tenant_id: UUID) -> Usage:
    """What the tenant has and did, beside what it may."""
    with database.transaction() as transaction:
        now = clock(transaction)
        [row] = transaction.run("limits.usage", tenant_id=tenant_id, since=now - _USAGE, now=now)
        limits = limits_of(transaction, tenant_id)
    return Usage(limits=limits, schedules=row["schedules"], runs=row["runs"] or {})


def _smallest_interval(timing: Timing) -> int | None:
    """In seconds, among the first occurrences of a year; None where there is only one."""
    instants = []
    spec, after = timing.calendar(_A_YEARS_START), _A_YEARS_START
    for _ in range(2 if timing.rate else _LOOKED_AT):
        following = next_occurrence(spec, after)
        if following is None:
            break
        instants.append(following)
        after = following
    return min((int((later - earlier).total_seconds()) for earlier, later in pairwise(instants)), default=None)
