"""The strict five-field cron grammar: a text to a rule, or InvalidExpression with field, position and remedy."""

import re
from bisect import bisect_left, bisect_right
from functools import lru_cache

from scheduler.calendar.days import DAY_SECONDS, day_rule
from scheduler.calendar.fields import DAY_OF_MONTH, DAY_OF_WEEK, HOUR, MINUTE, MONTH, Field, parse_field
from scheduler.calendar.text import quoted
from scheduler.errors import InvalidExpression

LONGEST_TEXT = 4096

_KINDS = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)
_ORDER = "minute hour day-of-month month day-of-week"
_MACROS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_BLANKS = " \t"
_TOKEN = re.compile(r"[^ \t]+")
_LINE_END = re.compile(r"[\r\n]")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}", re.ASCII)
_ZONE_PREFIX = re.compile(r"(?:CRON_)?TZ=", re.IGNORECASE)
_WRAPPED = re.compile(r"(cron|rate|at)\s*\(", re.IGNORECASE)


class CronRule:
    """A parsed expression. Wall times are seconds since 1970-01-01T00:00:00 on the zone's own clock."""

    def __init__(self, fields: tuple[Field, Field, Field, Field, Field]) -> None:
        minute, hour, *days = fields
        self.fields = fields
        self.expression = " ".join(map(str, fields))
        self.wildcard = minute.star or hour.star
        self.days = day_rule(*days)
        self._minutes = sorted(minute.values)
        self._hours = sorted(hour.values)

    def following(self, wall: int) -> int:
        """The first matching wall time at or after `wall`."""
        day, second = divmod(wall, DAY_SECONDS)
        at = self._time_from(second)
        if at is None:
            day, at = day + 1, self._first_time
        found = self.days.following(day)
        return found * DAY_SECONDS + (at if found == day else self._first_time)

    @property
    def _first_time(self) -> int:
        return self._hours[0] * 3600 + self._minutes[0] * 60

    def _time_from(self, second: int) -> int | None:
        """The first matching second of a day at or after this one."""
        hour, rest = divmod(second, 3600)
        index = bisect_left(self._hours, hour)
        if index < len(self._hours) and self._hours[index] == hour:
            minute = bisect_left(self._minutes, -(-rest // 60))
            if minute < len(self._minutes):
                return hour * 3600 + self._minutes[minute] * 60
        index = bisect_right(self._hours, hour)
        return self._hours[index] * 3600 + self._minutes[0] * 60 if index < len(self._hours) else None


@lru_cache(maxsize=4096)
def cron_rule(expression: str) -> CronRule:
    """The rule of a canonical expression, parsed once for all the schedules that share it."""
    return parse_cron(expression)


def parse_cron(text: str) -> CronRule:
    """Reads an expression; its `expression` is the canonical spelling. InvalidExpression says what else to write."""
    if len(text) > LONGEST_TEXT:
        raise InvalidExpression("cron", f"at most {LONGEST_TEXT} characters")
    _refuse_dialects(text)
    stripped = text.strip(_BLANKS)
    if stripped.startswith("@"):
        return parse_cron(_macro(text, stripped))
    rule = CronRule(_fields(text))
    if not rule.days.possible:
        raise InvalidExpression(
            "day-of-month", "no year has such a day; check the days against the months", position=_third(text)
        )
    return rule


def _fields(text: str) -> tuple[Field, Field, Field, Field, Field]:
    tokens = list(_TOKEN.finditer(text))
    if len(tokens) != 5:
        raise InvalidExpression("cron", _wrong_count(tokens), position=tokens[5].start() if len(tokens) > 5 else None)
    minute, hour, day, month, week = (
        parse_field(kind, token.group(), token.start()) for kind, token in zip(_KINDS, tokens, strict=True)
    )
    return minute, hour, day, month, week


def _wrong_count(tokens: list[re.Match[str]]) -> str:
    count = len(tokens)
    if count not in (6, 7):
        return f"{count or 'no'} field{'' if count == 1 else 's'}; write five: {_ORDER}"
    texts = [token.group() for token in tokens]
    what, kept = (
        ("last was a year", texts[:5]) if count == 6 and _YEAR.match(texts[5]) else ("first was seconds", texts[1:6])
    )
    five = quoted(" ".join("*" if text == "?" else text for text in kept))
    weekdays = ", with weekdays from 0 (Sunday) to 6" if "?" in texts else ""
    return (
        f"{count} fields: there are no seconds and no years here. Write five, {_ORDER}; if the {what}: {five}{weekdays}"
    )


def _refuse_dialects(text: str) -> None:
    line_end = _LINE_END.search(text)
    if line_end:
        raise InvalidExpression("cron", "write one expression on one line, a schedule each", position=line_end.start())
    start = len(text) - len(text.lstrip(_BLANKS))
    if _ZONE_PREFIX.match(text, start):
        raise InvalidExpression("cron", "write the zone in `timezone` and only the five fields here", position=start)
    wrapper = _WRAPPED.match(text, start)
    if wrapper:
        raise InvalidExpression("cron", _unwrap(wrapper.group(1).lower()), position=start)


def _unwrap(kind: str) -> str:
    if kind == "cron":
        return (
            f"write the five fields without cron(…): {_ORDER}; no year, * for ?, "
            "and weekdays from 0 (Sunday) to 6, not from 1"
        )
    return f'write {{"{kind}": …}} instead of {kind}(…)'


def _macro(text: str, name: str) -> str:
    expansion = _MACROS.get(name.lower())
    if expansion is not None:
        return expansion
    known = ", ".join(_MACROS)
    instead = 'write {"rate": "5 minutes"} for an interval' if name.lower().startswith("@every") else f"write {known}"
    raise InvalidExpression("cron", f"{quoted(name)} is not known here; {instead}", position=text.index("@"))


def _third(text: str) -> int:
    """Where day-of-month stands in a text that has five fields."""
    return [token.start() for token in _TOKEN.finditer(text)][2]
