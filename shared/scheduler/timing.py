"""When a schedule fires, as a tenant says it, and the calendar and window that it means."""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Any

from scheduler.calendar.occurrences import next_occurrence
from scheduler.calendar.spec import CalendarSpec, Gap, OnExcluded, Overlap, at, cron, rate, without_dates
from scheduler.errors import InvalidExpression, InvalidInput, Problem

# The window's lower end is inclusive, and a change at t leaves t itself to what was there before.
TICK = timedelta(microseconds=1)
MOST_JITTER_SECONDS = 3_600
MOST_GRACE_SECONDS = 86_400
MOST_CAP = 1_000
MOST_RUNS = 2**53
MOST_OCCURRENCES = 100
MOST_LISTED_DATES = 1_000
LONGEST_LIST_NAME = 100


class Late(StrEnum):
    """Which occurrences later than the grace still run: the newest up to the cap, the newest one, or none."""

    ALL = "all"
    LATEST = "latest"
    SKIP = "skip"


@dataclass(frozen=True, kw_only=True, slots=True)
class Misfire:
    """What happens to late occurrences. The grace is also how late a one-off may be at its creation and still fire."""

    policy: Late = Late.ALL
    grace_seconds: int = 60
    cap: int = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Exclude:
    """Local dates on which it does not fire: its own, and those of the tenant's lists of these names."""

    dates: tuple[date, ...] = ()
    lists: tuple[str, ...] = ()
    on_excluded: OnExcluded = OnExcluded.SKIP


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """Exactly one of `cron`, `rate` and `at`; a wall-clock zone and policies; the half-open window [start_at, end_at).

    `max_runs`: how many runs in all, counted from when a limit was first set. `jitter_seconds`: how far a run may be put off.
    """

    cron: str | None = None
    rate: str | None = None
    at: str | None = None
    timezone: str = "UTC"
    gap: Gap = Gap.SHIFT
    overlap: Overlap = Overlap.FIRST
    start_at: datetime | None = None
    end_at: datetime | None = None
    max_runs: int | None = None
    jitter_seconds: int = 0
    misfire: Misfire = field(default_factory=Misfire)
    exclude: Exclude = field(default_factory=Exclude)

    def __post_init__(self) -> None:
        given = [name for name in ("cron", "rate", "at") if getattr(self, name) is not None]
        if len(given) != 1:
            detail = f"give exactly one of cron, rate and at, not {' and '.join(given) if given else 'none'}"
            raise InvalidInput(Problem(pointer="", detail=detail))
        if self.start_at and self.end_at and self.start_at >= self.end_at:
            raise InvalidInput(Problem(pointer="/end_at", detail="must be later than start_at"))

    def same_calendar(self, other: "Timing") -> bool:
        """Whether both mean one calendar row. A rate without start_at stays anchored where it was created."""
        mine, others = self._without_window(), other._without_window()
        if self.rate is not None:
            return mine == others and self.start_at == other.start_at
        return mine == others

    def calendar(self, now: datetime, listed: Collection[date] = ()) -> CalendarSpec:
        """The calendar of this timing, created at `now`, where its lists hold these dates. InvalidExpression for a bad text."""
        try:
            spec = self._calendar(now)
            return without_dates(spec, {*self.exclude.dates, *listed}, self.exclude.on_excluded, self.timezone)
        except InvalidExpression as error:
            raise InvalidExpression(
                error.field, str(error), position=error.position, pointer=_pointer(error.field)
            ) from None

    def first_moment(self, spec: CalendarSpec, now: datetime) -> datetime:
        """The window's first instant for a timing that is set at `now`.

        A one-off that is late by less than the grace is still in it; InvalidInput where it is older, or never comes.
        """
        return self.from_now(now) if self.at is None else self._moment(spec, now)

    def from_now(self, now: datetime) -> datetime:
        """The window's first instant for a timing that goes on at `now`."""
        return max(now + TICK, self.start_at or now)

    def to_json(self) -> str:
        """The form that the table keeps."""
        document = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(document, default=lambda moment: moment.isoformat())

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> "Timing":
        """The timing that `to_json` wrote."""

        def instant(name: str) -> datetime | None:
            return datetime.fromisoformat(document[name]) if name in document else None

        misfire, exclude = document.get("misfire"), document.get("exclude")
        return cls(
            cron=document.get("cron"),
            rate=document.get("rate"),
            at=document.get("at"),
            timezone=document["timezone"],
            gap=Gap(document["gap"]),
            overlap=Overlap(document["overlap"]),
            start_at=instant("start_at"),
            end_at=instant("end_at"),
            max_runs=document.get("max_runs"),
            jitter_seconds=document.get("jitter_seconds", 0),
            misfire=Misfire(**(misfire | {"policy": Late(misfire["policy"])})) if misfire else Misfire(),
            exclude=_exclude(exclude) if exclude else Exclude(),
        )

    def _without_window(self) -> tuple[object, ...]:
        return self.cron, self.rate, self.at, self.timezone, self.gap, self.overlap, self.exclude

    def _calendar(self, now: datetime) -> CalendarSpec:
        if self.cron is not None:
            return cron(self.cron, self.timezone, gap=self.gap, overlap=self.overlap)
        if self.rate is not None:
            return rate(self.rate, self.start_at or now.replace(microsecond=0))
        assert self.at is not None  # noqa: S101 - __post_init__ has seen to it
        return at(self.at, self.timezone, gap=self.gap, overlap=self.overlap)

    def _moment(self, spec: CalendarSpec, now: datetime) -> datetime:
        moment = next_occurrence(spec, now - timedelta(seconds=self.misfire.grace_seconds) - TICK)
        if moment is not None:
            # From now on, and not from the moment: zone data may move it to an earlier one.
            first = min(moment, now + TICK)
            return max(first, self.start_at or first)
        first = datetime(1970, 1, 1, tzinfo=UTC)
        if next_occurrence(spec, first) is not None:
            grace = self.misfire.grace_seconds
            detail = f"{self.at} in {self.timezone} is past by more than {grace} seconds"
        elif next_occurrence(replace(spec, excluded=()), first) is not None:
            detail = f"{self.at} in {self.timezone} is on an excluded date"
        else:
            detail = f"{self.at} does not occur in {self.timezone}, where the clocks skip it; the gap policy is skip"
        raise InvalidInput(Problem(pointer="/at", detail=detail))


def _exclude(document: dict[str, Any]) -> Exclude:
    return Exclude(
        dates=tuple(map(date.fromisoformat, document["dates"])),
        lists=tuple(document["lists"]),
        on_excluded=OnExcluded(document["on_excluded"]),
    )


def _pointer(field_at_fault: str) -> str:
    if field_at_fault == "on_excluded":
        return "/exclude/on_excluded"
    return f"/{field_at_fault}" if field_at_fault in ("timezone", "rate", "at") else "/cron"
