"""Rates: "15 minutes" to seconds and back. Real elapsed time, so a day is 86,400 seconds whatever the clocks do."""

import re

from scheduler.calendar.text import quoted
from scheduler.errors import InvalidExpression

LEAST_SECONDS = 10
MOST_SECONDS = 36_500 * 86_400

_UNITS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_RATE = re.compile(r"[ \t]*([0-9]{1,64})[ \t]+(second|minute|hour|day)s?[ \t]*\Z", re.ASCII | re.IGNORECASE)
_HOW = "write a whole number and a unit, such as 10 seconds, 15 minutes, 1 hour or 7 days"


def parse_rate(text: str) -> int:
    """The period in seconds, 10 to 3,153,600,000. InvalidExpression otherwise."""
    match = _RATE.match(text)
    if match is None:
        raise InvalidExpression("rate", f"{quoted(text)} is not a rate; {_HOW}")
    seconds = int(match.group(1)) * _UNITS[match.group(2).lower()]
    if not LEAST_SECONDS <= seconds <= MOST_SECONDS:
        raise InvalidExpression(
            "rate", f"{quoted(text)} is out of range; write {LEAST_SECONDS} seconds to {MOST_SECONDS // 86_400} days"
        )
    return seconds


def format_rate(seconds: int) -> str:
    """The one spelling of a period: in the largest unit that divides it."""
    unit, size = next((unit, size) for unit, size in _UNITS.items() if seconds % size == 0)
    count = seconds // size
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
