"""The slow truth: walks real time minute by minute and reads the wall, with none of the product's code.

Zones come from the tzdata package through the standard library; what an expression means comes as sets and predicates.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
# Wider than any change of a clock from 2024 to 2030.
PAD = timedelta(hours=3)


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a calendar's text means: which wall times, and whether the job is a wildcard one."""

    matches: Callable[[datetime], bool]
    wildcard: bool


@dataclass(frozen=True, kw_only=True)
class Change:
    """A zone's clock is put forward or back at `at`, the first instant of the new offset."""

    zone: str
    at: datetime
    before: timedelta
    after: timedelta


@lru_cache(maxsize=1)
def zone_names() -> tuple[str, ...]:
    """The package's own list."""
    return tuple(resources.files("tzdata").joinpath("zones").read_text("ascii").split())


@lru_cache(maxsize=1024)
def zone(name: str) -> ZoneInfo:
    """A zone straight from the package's file."""
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@lru_cache(maxsize=1)
def changes() -> tuple[Change, ...]:
    """Each change of each zone's offset from 2024 to 2030."""
    return tuple(change for name in zone_names() for change in _changes(name))


def _changes(name: str) -> Iterator[Change]:
    step = timedelta(days=1)
    day = datetime(2024, 1, 1, tzinfo=UTC)
    while day < datetime(2031, 1, 1, tzinfo=UTC):
        before, after = _offset(name, day), _offset(name, day + step)
        if before != after:
            minute = day
            while _offset(name, minute) == before:
                minute += MINUTE
            yield Change(zone=name, at=minute, before=before, after=after)
        day += step


def _offset(name: str, instant: datetime) -> timedelta:
    offset = instant.astimezone(zone(name)).utcoffset()
    assert offset is not None
    return offset


def walk(meaning: Meaning, zone_name: str, policy: tuple[str, str], after: datetime, until: datetime) -> list[datetime]:
    """The instants in (after, until] that a calendar means under (gap, overlap)."""
    gap, overlap = ("skip", "both") if meaning.wildcard else policy
    minutes = _walls(zone_name, after.replace(second=0, microsecond=0) - PAD, until + PAD)
    passes = defaultdict(list)
    for instant, wall in minutes:
        passes[wall].append(instant)
    fired = set()
    for wall, instants in passes.items():
        if meaning.matches(wall):
            fired.update({"first": instants[:1], "last": instants[-1:], "both": instants}[overlap])
    if gap == "shift":
        for (_, before), (instant, wall) in pairwise(minutes):
            if any(meaning.matches(missing) for missing in _between(before, wall)):
                fired.add(instant)
    return sorted(instant for instant in fired if after < instant <= until)


def _between(before: datetime, after: datetime) -> Iterator[datetime]:
    """The wall minutes that are jumped over."""
    missing = before + MINUTE
    while missing < after:
        yield missing
        missing += MINUTE


@lru_cache(maxsize=256)
def _walls(zone_name: str, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
    minutes = []
    instant = start
    while instant <= end:
        minutes.append((instant, instant.astimezone(zone(zone_name)).replace(tzinfo=None, fold=0)))
        instant += MINUTE
    return minutes


def days_of_month(day: date) -> list[date]:
    """All days of this day's month."""
    first = day.replace(day=1)
    return [first + timedelta(days=n) for n in range(31) if (first + timedelta(days=n)).month == day.month]
