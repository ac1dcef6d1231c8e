"""Which days a cron expression means, and the next of them. Days are counted from 1970-01-01, which is day 0."""

from bisect import bisect_left
from datetime import date
from functools import lru_cache
from itertools import count

from scheduler.calendar.fields import Field
from scheduler.calendar.special import MonthShape

DAY_SECONDS = 86_400
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()

_LENGTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class DayRule:
    """Day-of-month, month and day-of-week together, by the rule of Vixie's cron.

    A field that starts with `*` is unrestricted: both day fields are then to be met; otherwise either is enough. `all_days`:
    the two allow any day of a month that is in; `every_day`: and all months are in.
    """

    def __init__(self, day_of_month: Field, month: Field, day_of_week: Field) -> None:
        self._day_of_month = day_of_month
        self._day_of_week = day_of_week
        self._months = sorted(month.values)
        # What is known of each shape of month, 28 at most.
        self._known: dict[MonthShape, list[int]] = {}
        # The latest question and its answer: no day from the one to the other matches but the answer itself.
        self._latest = (0, -1)
        self.intersect = day_of_month.star or day_of_week.star
        sides = day_of_month.full, day_of_week.full
        self.all_days = all(sides) if self.intersect else any(sides)
        self.every_day = month.full and self.all_days

    @property
    def possible(self) -> bool:
        """Whether some day of the 400-year Gregorian cycle matches: each month begins on every weekday within it."""
        return any(
            self._days_in(MonthShape(length, first))
            for month in self._months
            for length in ({28, 29} if month == 2 else {_LENGTHS[month]})
            for first in range(7)
        )

    def following(self, day: int) -> int:
        """The first matching day at or after `day`, of a rule that is possible."""
        if self.every_day:
            return day
        asked, found = self._latest
        if not asked <= day <= found:
            found = _following(self, day)
            self._latest = day, found
        return found

    def search(self, day: int) -> int:
        """`following` without the memos: month by month, those that are in."""
        ordinal = day + EPOCH_ORDINAL
        start = date.fromordinal(ordinal)
        for year in count(start.year):
            for month in self._months:
                if year > start.year or month >= start.month:
                    before = date(year, month, 1).toordinal() - 1
                    days = self._days_in(MonthShape(_length(year, month), (before + 1) % 7))
                    if days and before + days[-1] >= ordinal:
                        return before + days[bisect_left(days, ordinal - before)] - EPOCH_ORDINAL
        raise AssertionError("years do not end")

    def _days_in(self, month: MonthShape) -> list[int]:
        """The matching days of a month of this shape, whatever its name, in order."""
        days = self._known.get(month)
        if days is None:
            days = self._known[month] = self._read(month)
        return days

    def _read(self, month: MonthShape) -> list[int]:
        by_date = {day for day in self._day_of_month.values if day <= month.length}
        by_week = {day for day in range(1, month.length + 1) if month.weekday(day) in self._day_of_week.values}
        by_date |= {special.day(month) or 0 for special in self._day_of_month.specials}
        by_week |= {special.day(month) or 0 for special in self._day_of_week.specials}
        met = by_date & by_week if self.intersect else by_date | by_week
        return sorted(met - {0})


def _length(year: int, month: int) -> int:
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if leap else _LENGTHS[month]


@lru_cache(maxsize=2048)
def day_rule(day_of_month: Field, month: Field, day_of_week: Field) -> DayRule:
    """The one rule of these fields, so that calendars with the same days share what is known of them."""
    return DayRule(day_of_month, month, day_of_week)


@lru_cache(maxsize=16_384)
def _following(rule: DayRule, day: int) -> int:
    return rule.search(day)
