"""Which days a cron expression means, and the next of them. Days are counted from 1970-01-01, which is day 0."""

import calendar
import copy
from collections.abc import Iterator
from datetime import date
from functools import cached_property, lru_cache
from itertools import count

from croniter import croniter

from scheduler.calendar.fields import Field
from scheduler.calendar.special import MonthShape

DAY_SECONDS = 86_400
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()

_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class DayRule:
    """Day-of-month, month and day-of-week together, by the rule of Vixie's cron.

    A field that starts with `*` is unrestricted: both day fields are then to be met; otherwise either is enough. `all_days`:
    the two allow any day of a month that is in; `every_day`: and all months are in.
    """

    def __init__(self, day_of_month: Field, month: Field, day_of_week: Field) -> None:
        self._day_of_month = day_of_month
        self._month = month
        self._day_of_week = day_of_week
        self._intersect = day_of_month.star or day_of_week.star
        # The latest question and its answer: no day from the one to the other matches but the answer itself.
        self._latest = (0, -1)
        sides = day_of_month.full, day_of_week.full
        self.all_days = all(sides) if self._intersect else any(sides)
        self.every_day = month.full and self.all_days

    def days_in(self, month: MonthShape) -> list[int]:
        """The matching days of a month of this shape, whatever its name, in order."""
        all_days = range(1, month.length + 1)
        by_date = {day for day in self._day_of_month.values if day <= month.length}
        by_week = {day for day in all_days if month.weekday(day) in self._day_of_week.values}
        by_date |= {special.day(month) or 0 for special in self._day_of_month.specials}
        by_week |= {special.day(month) or 0 for special in self._day_of_week.specials}
        met = by_date & by_week if self._intersect else by_date | by_week
        return sorted(met - {0})

    @property
    def possible(self) -> bool:
        """Whether some day of the 400-year Gregorian cycle matches: each month begins on every weekday within it."""
        return any(
            self.days_in(MonthShape(length, first))
            for month in self._month.values
            for length in ({28, 29} if month == 2 else {_LENGTHS[month - 1]})
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

    @cached_property
    def _walker(self) -> croniter | None:
        """croniter over plain lists, or None where a rule is beyond it: it knows no LW, L-n or nL and no mixed list.

        It reads a list of all values as a star, which turns "either" into "both": such a rule is not for it.
        """
        if self._day_of_month.specials or self._day_of_week.specials:
            return None
        if self.all_days and not self._intersect:
            return None
        lists = (",".join(map(str, sorted(f.values))) for f in (self._day_of_month, self._month, self._day_of_week))
        return croniter(" ".join(("0", "0", *lists)), 0.0, day_or=not self._intersect)

    def search(self, day: int) -> int:
        """`following` without the memos."""
        if self._walker is None:
            return next(matching for matching in self.from_month_of(day) if matching >= day)
        # A walker keeps its place; a copy a search lets threads share the parsed one.
        instant: float = copy.copy(self._walker).get_next(float, start_time=float(day * DAY_SECONDS - 60))
        return int(instant) // DAY_SECONDS

    def from_month_of(self, day: int) -> Iterator[int]:
        """All matching days from the first of this day's month on."""
        start = date.fromordinal(day + EPOCH_ORDINAL)
        for months in count(start.year * 12 + start.month - 1):
            year, month = divmod(months, 12)
            if month + 1 in self._month.values:
                first = date(year, month + 1, 1)
                length = calendar.monthrange(year, month + 1)[1]
                before = first.toordinal() - EPOCH_ORDINAL - 1
                yield from (before + each for each in self.days_in(MonthShape(length, first.isoweekday() % 7)))


@lru_cache(maxsize=2048)
def day_rule(day_of_month: Field, month: Field, day_of_week: Field) -> DayRule:
    """The one rule of these fields, so that calendars with the same days share what is known of them."""
    return DayRule(day_of_month, month, day_of_week)


@lru_cache(maxsize=16_384)
def _following(rule: DayRule, day: int) -> int:
    return rule.search(day)
