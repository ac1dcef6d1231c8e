"""One cron field: its terms read strictly, range-checked before any expansion, and written back in one spelling."""

from dataclasses import dataclass

from scheduler.calendar.special import Special, special_term
from scheduler.calendar.text import decimal, quoted
from scheduler.errors import InvalidExpression

# A list with more numbers than this is easier to read as ranges.
_SHORT = 7
# How random values begin elsewhere; no name here begins so.
_RANDOM = ("H", "h", "R", "r")


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldKind:
    """What a field may hold. `count` is the number of distinct values; day-of-week has 7 of them, written 0 to 7.

    `names`: words for the values from `low` on.
    """

    name: str
    low: int
    high: int
    count: int
    names: tuple[str, ...] = ()

    @property
    def top(self) -> int:
        """The last value when each is written once: 6, not 7, for day-of-week."""
        return self.low + self.count - 1


MINUTE = FieldKind(name="minute", low=0, high=59, count=60)
HOUR = FieldKind(name="hour", low=0, high=23, count=24)
DAY_OF_MONTH = FieldKind(name="day-of-month", low=1, high=31, count=31)
MONTH = FieldKind(
    name="month",
    low=1,
    high=12,
    count=12,
    names=("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
)
DAY_OF_WEEK = FieldKind(
    name="day-of-week", low=0, high=7, count=7, names=("sun", "mon", "tue", "wed", "thu", "fri", "sat")
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """What a field's text means.

    `star`: the text starts with `*`, which is all that cron means by "unrestricted". `values`: the plain numbers,
    Sunday as 0. `specials`: terms whose days depend on the month (`L`, `15W`, `5#2`, …).
    """

    star: bool
    values: frozenset[int]
    specials: frozenset[Special]
    kind: FieldKind

    @property
    def full(self) -> bool:
        """Whether every value of the field is in it, star or not."""
        return len(self.values) == self.kind.count

    def __str__(self) -> str:
        """The one spelling of this meaning: texts that mean the same, star included, come out the same."""
        parts, rest = self._star_part()
        parts += _runs(sorted(rest))
        parts += sorted(str(special) for special in self.specials)
        return ",".join(parts)

    def _star_part(self) -> tuple[list[str], frozenset[int]]:
        """A leading star with its smallest step that stays inside the values, and the values that this leaves over."""
        if not self.star:
            return [], self.values
        for step in range(1, self.kind.count + 1):
            covered = frozenset(range(self.kind.low, self.kind.top + 1, step))
            if covered <= self.values:
                return ["*" if step == 1 else f"*/{step}"], self.values - covered
        raise AssertionError("a field that starts with a star holds the values of some */n")


def parse_field(kind: FieldKind, text: str, position: int) -> Field:
    """Reads one field. `position` is where it starts in the whole text, for errors (InvalidExpression)."""
    values: set[int] = set()
    specials: set[Special] = set()
    for term in text.split(","):
        special = _special(kind, term, position)
        if special is None:
            values.update(_plain(kind, term, position))
        else:
            specials.add(special)
        position += len(term) + 1
    return Field(star=text.startswith("*"), values=frozenset(values), specials=frozenset(specials), kind=kind)


def _special(kind: FieldKind, term: str, position: int) -> Special | None:
    if kind not in (DAY_OF_MONTH, DAY_OF_WEEK):
        return None
    return special_term(kind.name, term, position, lambda text, offset: _value(kind, text, position + offset))


def _plain(kind: FieldKind, term: str, position: int) -> range | set[int]:
    """The values of `*`, `a`, `a-b` and each of them with `/n`."""
    base, slash, step_text = term.partition("/")
    step = _step(kind, step_text, position + len(base) + 1) if slash else 1
    if base == "*":
        return range(kind.low, kind.top + 1, step)
    low_text, dash, high_text = base.partition("-")
    low = _value(kind, low_text, position)
    if dash:
        high = _value(kind, high_text, position + len(low_text) + 1)
        return _range(kind, (low, high, step), base, position)
    if not slash:
        return {_once(kind, low)}
    return _from(kind, low, step, position)


def _range(kind: FieldKind, bounds: tuple[int, int, int], base: str, position: int) -> set[int]:
    low, high, step = bounds
    if low > high:
        named = any(character.isalpha() for character in base)
        raise InvalidExpression(
            kind.name,
            f"the range {quoted(base)} wraps around; write {_unwrapped(kind, bounds, named=named)}",
            position=position,
        )
    return {_once(kind, value) for value in range(low, high + 1, step)}


def _from(kind: FieldKind, low: int, step: int, position: int) -> range:
    if low > kind.top:
        raise InvalidExpression(
            kind.name,
            "a step can't start at 7; write 0/n to start at Sunday, or 0 for Sundays alone",
            position=position,
        )
    return range(low, kind.top + 1, step)


def _unwrapped(kind: FieldKind, bounds: tuple[int, int, int], *, named: bool) -> str:
    """The list that a wrapping range stands for; its bounds are in range, so it is short."""
    low, high, step = bounds
    before, after = range(low, kind.top + 1), range(kind.low, high + 1)
    circle = [*before, *after][::step]
    if named:
        return ",".join(kind.names[value - kind.low] for value in circle)
    short = len(circle) <= _SHORT or step > 1
    return ",".join(map(str, circle) if short else [*_runs([*before]), *_runs([*after])])


def _once(kind: FieldKind, value: int) -> int:
    return value if value <= kind.top else kind.low


def _value(kind: FieldKind, text: str, position: int) -> int:
    word = text.lower()
    if word in kind.names:
        return kind.low + kind.names.index(word)
    value = _number(kind, text, position)
    if not kind.low <= value <= kind.high:
        raise InvalidExpression(
            kind.name, f"{quoted(text)} is out of range; write {kind.low} to {kind.high}", position=position
        )
    return value


def _number(kind: FieldKind, text: str, position: int) -> int:
    number = decimal(text)
    if number is None:
        raise InvalidExpression(kind.name, _not_a_value(kind, text), position=position)
    return number


def _step(kind: FieldKind, text: str, position: int) -> int:
    step = decimal(text)
    if step is None:
        what = f"{quoted(text)} is not a value" if text else "a value is missing"
        raise InvalidExpression(kind.name, f"{what}; write a step from 1 to {kind.count} here", position=position)
    if not 1 <= step <= kind.count:
        raise InvalidExpression(
            kind.name, f"the step {quoted(text)} is out of range; write 1 to {kind.count}", position=position
        )
    return step


def _not_a_value(kind: FieldKind, text: str) -> str:
    if not text:
        return f"a value is missing; write {kind.low} to {kind.high}, a range, a list or *"
    if text == "?":
        return "'?' is another dialect; write * for any, and weekdays from 0 (Sunday) to 6"
    if "~" in text or text[:1] in _RANDOM:
        return f"{quoted(text)} is another dialect's random value; write a number, and jitter_seconds beside the expression"
    names = f" or {kind.names[0]} to {kind.names[-1]}" if kind.names else ""
    return f"{quoted(text)} is not a value; write {kind.low} to {kind.high}{names}"


def _runs(values: list[int]) -> list[str]:
    """Sorted numbers as the terms of a list, three or more in a row as a range."""
    terms: list[str] = []
    start = 0
    for index in range(1, len(values) + 1):
        if index == len(values) or values[index] != values[index - 1] + 1:
            terms += _run(values[start:index])
            start = index
    return terms


def _run(values: list[int]) -> list[str]:
    return [f"{values[0]}-{values[-1]}"] if len(values) >= 3 else [str(value) for value in values]
