"""Excluded dates: wall times without those of some local days, or moved to the next day that is not excluded."""

from bisect import bisect_left
from datetime import date
from functools import lru_cache
from typing import Protocol, assert_never

from scheduler.calendar.days import DAY_SECONDS, EPOCH_ORDINAL
from scheduler.calendar.spec import OnExcluded


class Walls(Protocol):
    """Wall times in order, as seconds since 1970-01-01T00:00:00 on the zone's own clock."""

    def following(self, wall: int) -> int | None:
        """The first one at or after `wall`."""
        ...


class Dates:
    """Excluded local dates, as days since 1970-01-01."""

    def __init__(self, dates: tuple[date, ...]) -> None:
        self._days = sorted({each.toordinal() - EPOCH_ORDINAL for each in dates})
        self._known = frozenset(self._days)

    def __contains__(self, day: int) -> bool:
        return day in self._known

    def allowed(self, day: int) -> int:
        """The first day at or after `day` that is not excluded."""
        while day in self._known:
            day += 1
        return day

    def excluded(self, day: int) -> int | None:
        """The first excluded day at or after `day`."""
        place = bisect_left(self._days, day)
        return self._days[place] if place < len(self._days) else None


@lru_cache(maxsize=1024)
def dates_of(dates: tuple[date, ...]) -> Dates:
    """The one value of these dates."""
    return Dates(dates)


def excluding(walls: Walls, dates: tuple[date, ...], on_excluded: OnExcluded) -> Walls:
    """The wall times with what the policy makes of those on excluded dates."""
    if not dates and on_excluded is not OnExcluded.ONLY:
        return walls
    known = dates_of(dates)
    match on_excluded:
        case OnExcluded.SKIP:
            return _Skipping(walls, known)
        case OnExcluded.NEXT_DAY:
            return _Moving(walls, known)
        case OnExcluded.ONLY:
            return _Only(walls, known)
        case _:
            assert_never(on_excluded)


class _Skipping:
    """Without the wall times of excluded dates."""

    def __init__(self, walls: Walls, dates: Dates) -> None:
        self._walls = walls
        self._dates = dates

    def following(self, wall: int) -> int | None:
        found = self._walls.following(wall)
        while found is not None and found // DAY_SECONDS in self._dates:
            found = self._walls.following(self._dates.allowed(found // DAY_SECONDS) * DAY_SECONDS)
        return found


class _Only:
    """The wall times of excluded dates alone."""

    def __init__(self, walls: Walls, dates: Dates) -> None:
        self._walls = walls
        self._dates = dates

    def following(self, wall: int) -> int | None:
        found = self._walls.following(wall)
        while found is not None and found // DAY_SECONDS not in self._dates:
            day = self._dates.excluded(found // DAY_SECONDS)
            if day is None:
                return None
            found = self._walls.following(day * DAY_SECONDS)
        return found


class _Moving:
    """Those of excluded dates happen at the same time of the next date that is not; two that meet there are one."""

    def __init__(self, walls: Walls, dates: Dates) -> None:
        self._walls = walls
        self._dates = dates

    def following(self, wall: int) -> int | None:
        while True:
            day = self._dates.allowed(wall // DAY_SECONDS)
            wall = max(wall, day * DAY_SECONDS)
            found = self._on(day, wall - day * DAY_SECONDS)
            if found is not None:
                return found
            later = self._walls.following((day + 1) * DAY_SECONDS)
            if later is None:
                return None
            wall = self._dates.allowed(later // DAY_SECONDS) * DAY_SECONDS

    def _on(self, day: int, since: int) -> int | None:
        """The first wall time of an allowed day, `since` seconds after its midnight at the earliest."""
        times = [self._time(day, since)]
        source = day - 1
        while source in self._dates:
            times.append(self._time(source, since))
            source -= 1
        found = [time for time in times if time is not None]
        return day * DAY_SECONDS + min(found) if found else None

    def _time(self, day: int, since: int) -> int | None:
        found = self._walls.following(day * DAY_SECONDS + since)
        return found - day * DAY_SECONDS if found is not None and found // DAY_SECONDS == day else None
