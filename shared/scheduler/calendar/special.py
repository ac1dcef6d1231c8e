"""Day terms whose days depend on the month: `L`, `L-n`, `nW`, `LW` and, by weekday, `nL` and `n#k`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from scheduler.calendar.text import decimal
from scheduler.errors import InvalidExpression

SUNDAY = 0
SATURDAY = 6

# Reads a value at an offset inside the term, range-checked, with its own error.
ReadValue = Callable[[str, int], int]


class MonthShape(NamedTuple):
    """All that a day rule may know of a month: its length, and the weekday of its first day (0 is Sunday)."""

    length: int
    first: int

    def weekday(self, day: int) -> int:
        """0 for Sunday to 6 for Saturday."""
        return (self.first + day - 1) % 7

    def first_on(self, weekday: int) -> int:
        """The first day of the month that is this weekday."""
        return (weekday - self.first) % 7 + 1


@dataclass(frozen=True, kw_only=True, slots=True)
class FromEnd:
    """`L` (back = 0) and `L-n`: so many days before the last; no day in a month that is too short for it."""

    back: int

    def day(self, month: MonthShape) -> int | None:
        """The day of this month, if there is one."""
        return month.length - self.back if self.back < month.length else None

    def __str__(self) -> str:
        return f"L-{self.back}" if self.back else "L"


@dataclass(frozen=True, kw_only=True, slots=True)
class NearestWeekday:
    """`nW`: the Monday-to-Friday day nearest to day n and in the same month; none in a month without day n."""

    to: int

    def day(self, month: MonthShape) -> int | None:
        """The day of this month, if there is one."""
        return _nearest_weekday(month, self.to) if self.to <= month.length else None

    def __str__(self) -> str:
        return f"{self.to}W"


@dataclass(frozen=True, kw_only=True, slots=True)
class LastWeekday:
    """`LW`: the last Monday-to-Friday day of the month."""

    def day(self, month: MonthShape) -> int | None:
        """The day of this month."""
        return _nearest_weekday(month, month.length)

    def __str__(self) -> str:
        return "LW"


@dataclass(frozen=True, kw_only=True, slots=True)
class LastOfWeek:
    """`nL` in day-of-week: the month's last such weekday."""

    weekday: int

    def day(self, month: MonthShape) -> int | None:
        """The day of this month."""
        first = month.first_on(self.weekday)
        return first + (month.length - first) // 7 * 7

    def __str__(self) -> str:
        return f"{self.weekday}L"


@dataclass(frozen=True, kw_only=True, slots=True)
class NthOfWeek:
    """`n#k` in day-of-week: the month's k-th such weekday; none in a month without it."""

    weekday: int
    nth: int

    def day(self, month: MonthShape) -> int | None:
        """The day of this month, if there is one."""
        day = month.first_on(self.weekday) + (self.nth - 1) * 7
        return day if day <= month.length else None

    def __str__(self) -> str:
        return f"{self.weekday}#{self.nth}"


type Special = FromEnd | NearestWeekday | LastWeekday | LastOfWeek | NthOfWeek


def special_term(field: str, term: str, position: int, value: ReadValue) -> Special | None:
    """The special that a term of day-of-month or day-of-week is, or None for a plain one.

    InvalidExpression for a term with a special's letter that is not one of the forms.
    """
    if not term.isascii():
        return None
    letters = term.upper()
    if field == "day-of-month":
        return _of_month(field, letters, position, value)
    return _of_week(field, letters, position, value)


def _of_month(field: str, letters: str, position: int, value: ReadValue) -> Special | None:
    if letters == "L":
        return FromEnd(back=0)
    if letters == "LW":
        return LastWeekday()
    if letters.startswith("L-"):
        return FromEnd(back=_bounded(field, letters[2:], position + 2, (0, 30)))
    if letters.endswith("W") and decimal(letters[:-1]) is not None:
        return NearestWeekday(to=value(letters[:-1], 0))
    if letters.startswith(("L", "W")) or letters.endswith("W"):
        raise InvalidExpression(
            field, "write L (last day), L-3 (third before it), 15W (weekday nearest the 15th) or LW", position=position
        )
    return None


def _of_week(field: str, letters: str, position: int, value: ReadValue) -> Special | None:
    weekday, hash_sign, nth = letters.partition("#")
    if hash_sign:
        return NthOfWeek(weekday=value(weekday, 0) % 7, nth=_bounded(field, nth, position + len(weekday) + 1, (1, 5)))
    if letters.startswith("L"):
        raise InvalidExpression(field, "write 5L for the month's last Friday, or 6 for Saturdays", position=position)
    if letters.endswith("W"):
        raise InvalidExpression(field, "W goes with a day of the month, as in 15W", position=position)
    if letters.endswith("L"):
        return LastOfWeek(weekday=value(letters[:-1], 0) % 7)
    return None


def _bounded(field: str, text: str, position: int, bounds: tuple[int, int]) -> int:
    low, high = bounds
    number = decimal(text)
    if number is None or not low <= number <= high:
        raise InvalidExpression(field, f"write a number from {low} to {high} here", position=position)
    return number


def _nearest_weekday(month: MonthShape, day: int) -> int:
    match month.weekday(day):
        case 0:
            return day + 1 if day < month.length else day - 2
        case 6:
            return day - 1 if day > 1 else day + 2
        case _:
            return day
