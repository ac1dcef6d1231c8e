"""When a schedule fires, as a tenant says it, and the calendar and window that it means."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from scheduler.calendar.occurrences import next_occurrence
from scheduler.calendar.spec import CalendarSpec, Gap, Overlap, at, cron, rate
from scheduler.errors import InvalidExpression, InvalidInput, Problem

# How late a one-off may be at its creation and still fire at once; the same grace as a misfire's.
GRACE = timedelta(seconds=60)
# The window's lower end is inclusive, and a change at t leaves t itself to what was there before.
TICK = timedelta(microseconds=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """Exactly one of `cron`, `rate` and `at`; a wall-clock zone and policy; the half-open window [start_at, end_at)."""

    cron: str | None = None
    rate: str | None = None
    at: str | None = None
    timezone: str = "UTC"
    gap: Gap = Gap.SHIFT
    overlap: Overlap = Overlap.FIRST
    start_at: datetime | None = None
    end_at: datetime | None = None

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

    def calendar(self, now: datetime) -> CalendarSpec:
        """The calendar of this timing, created at `now`. InvalidExpression where a text can't be taken."""
        try:
            return self._calendar(now)
        except InvalidExpression as error:
            pointer = f"/{error.field}" if error.field in ("timezone", "rate", "at") else "/cron"
            raise InvalidExpression(error.field, str(error), position=error.position, pointer=pointer) from None

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
        return json.dumps(document, default=datetime.isoformat)

    @classmethod
    def from_json(cls, document: dict[str, str]) -> "Timing":
        """The timing that `to_json` wrote."""

        def instant(name: str) -> datetime | None:
            return datetime.fromisoformat(document[name]) if name in document else None

        return cls(
            cron=document.get("cron"),
            rate=document.get("rate"),
            at=document.get("at"),
            timezone=document["timezone"],
            gap=Gap(document["gap"]),
            overlap=Overlap(document["overlap"]),
            start_at=instant("start_at"),
            end_at=instant("end_at"),
        )

    def _without_window(self) -> tuple[object, ...]:
        return self.cron, self.rate, self.at, self.timezone, self.gap, self.overlap

    def _calendar(self, now: datetime) -> CalendarSpec:
        if self.cron is not None:
            return cron(self.cron, self.timezone, gap=self.gap, overlap=self.overlap)
        if self.rate is not None:
            return rate(self.rate, self.start_at or now.replace(microsecond=0))
        assert self.at is not None  # noqa: S101 - __post_init__ has seen to it
        return at(self.at, self.timezone, gap=self.gap, overlap=self.overlap)

    def _moment(self, spec: CalendarSpec, now: datetime) -> datetime:
        moment = next_occurrence(spec, now - GRACE)
        if moment is not None:
            return max(moment, self.start_at or moment)
        if next_occurrence(spec, datetime(1970, 1, 1, tzinfo=UTC)) is None:
            detail = f"{self.at} does not occur in {self.timezone}, where the clocks skip it; the gap policy is skip"
        else:
            detail = f"{self.at} in {self.timezone} is past by more than {GRACE.seconds} seconds"
        raise InvalidInput(Problem(pointer="/at", detail=detail))
