"""Random cron expressions, each as a text together with what it means, made apart from the product's grammar."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime

from brute_walk import Meaning, days_of_month
from hypothesis import strategies as st

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

type Day = Callable[[date], bool]
type Term[T] = tuple[str, T]


@dataclass(frozen=True, kw_only=True)
class Expression:
    """A text and its meaning."""

    text: str
    meaning: Meaning
    on_day: Day


def _number(value: int) -> st.SearchStrategy[str]:
    return st.sampled_from([str(value), str(value), f"0{value}", f"00{value}"])


@st.composite
def _plain(draw: st.DrawFn, low: int, high: int, names: tuple[str, ...] = ()) -> Term[frozenset[int]]:
    """A value, a range, a step, or a star, of the values `low` to `high`."""

    def spelled(value: int) -> str:
        if names and draw(st.booleans()):
            word = names[value - low]
            return draw(st.sampled_from([word, word.upper(), word.title()]))
        return draw(_number(value))

    form = draw(st.sampled_from(["value", "value", "range", "range/step", "*", "*/step", "value/step"]))
    step = draw(st.integers(1, min(high - low + 1, 30)))
    first = draw(st.integers(low, high))
    last = draw(st.integers(first, high))
    match form:
        case "value":
            return spelled(first), frozenset({first})
        case "range":
            return f"{spelled(first)}-{spelled(last)}", frozenset(range(first, last + 1))
        case "range/step":
            return f"{spelled(first)}-{spelled(last)}/{step}", frozenset(range(first, last + 1, step))
        case "value/step":
            return f"{spelled(first)}/{step}", frozenset(range(first, high + 1, step))
        case "*":
            return "*", frozenset(range(low, high + 1))
        case _:
            return f"*/{step}", frozenset(range(low, high + 1, step))


def _list[T](term: st.SearchStrategy[Term[T]]) -> st.SearchStrategy[list[Term[T]]]:
    return st.lists(term, min_size=1, max_size=3)


def _joined[T](terms: Iterable[Term[T]]) -> str:
    return ",".join(text for text, _ in terms)


def _any_of(terms: list[Term[Day]]) -> Day:
    return lambda day: any(means(day) for _, means in terms)


@st.composite
def _day_of_month(draw: st.DrawFn) -> Term[Day]:
    form = draw(st.sampled_from(["plain", "plain", "plain", "L", "L-n", "nW", "LW"]))
    n = draw(st.integers(1, 31))
    match form:
        case "plain":
            text, values = draw(_plain(1, 31))
            return text, lambda day: day.day in values
        case "L":
            return draw(st.sampled_from("lL")), lambda day: day == days_of_month(day)[-1]
        case "L-n":
            back = draw(st.integers(1, 30))
            return f"L-{back}", lambda day: day in days_of_month(day)[:-back][-1:]
        case "nW":
            return f"{draw(_number(n))}W", lambda day: _nearest_weekday(day, n)
        case _:
            return "LW", lambda day: day == [d for d in days_of_month(day) if d.isoweekday() <= 5][-1]


def _nearest_weekday(day: date, to: int) -> bool:
    month = days_of_month(day)
    if to > len(month):
        return False
    return day == min((d for d in month if d.isoweekday() <= 5), key=lambda d: abs(d.day - to))


@st.composite
def _day_of_week(draw: st.DrawFn) -> Term[Day]:
    form = draw(st.sampled_from(["plain", "plain", "plain", "to 7", "nL", "n#k"]))
    weekday = draw(st.integers(0, 7))
    name = draw(st.sampled_from([str(weekday), WEEKDAYS[weekday % 7]]))
    match form:
        case "plain":
            text, values = draw(_plain(0, 6, WEEKDAYS))
            return text, lambda day: day.isoweekday() % 7 in values
        case "to 7":
            return f"{weekday}-7", lambda day: day.isoweekday() in range(weekday or -1, 8)
        case "nL":
            return f"{name}L", lambda day: day in _same_weekdays(day, weekday)[-1:]
        case _:
            nth = draw(st.integers(1, 5))
            return f"{name}#{nth}", lambda day: day in _same_weekdays(day, weekday)[nth - 1 : nth]


def _same_weekdays(day: date, weekday: int) -> list[date]:
    return [d for d in days_of_month(day) if d.isoweekday() % 7 == weekday % 7]


_STAR: st.SearchStrategy[list[Term[Day]]] = st.just([("*", lambda _: True)])
_ALL_MONTHS = st.just([("*", frozenset(range(1, 13)))])


@st.composite
def expressions(draw: st.DrawFn) -> Expression:
    """An expression that may well never fire; its days are mostly every day, so that a few days of walking see something."""
    minutes, hours = draw(_list(_plain(0, 59))), draw(_list(_plain(0, 23)))
    by_date = draw(_STAR | _list(_day_of_month()))
    months = draw(_ALL_MONTHS | _ALL_MONTHS | _list(_plain(1, 12, MONTHS)))
    by_week = draw(_STAR | _list(_day_of_week()))
    fields = [_joined(minutes), _joined(hours), _joined(by_date), _joined(months), _joined(by_week)]

    def on_day(day: date) -> bool:
        if not any(day.month in values for _, values in months):
            return False
        sides = _any_of(by_date)(day), _any_of(by_week)(day)
        return all(sides) if fields[2].startswith("*") or fields[4].startswith("*") else any(sides)

    def matches(wall: datetime) -> bool:
        return (
            any(wall.minute in values for _, values in minutes)
            and any(wall.hour in values for _, values in hours)
            and on_day(wall.date())
        )

    return Expression(
        text=draw(st.sampled_from([" ", "  ", "\t"])).join(fields),
        meaning=Meaning(matches=matches, wildcard=fields[0].startswith("*") or fields[1].startswith("*")),
        on_day=on_day,
    )
