"""A calendar in one English sentence, for the person who wrote it to check."""

from datetime import datetime
from typing import assert_never

from scheduler.calendar.fields import DAY_OF_WEEK, Field
from scheduler.calendar.grammar import CronRule, cron_rule
from scheduler.calendar.spec import CalendarSpec, Kind, OnExcluded
from scheduler.calendar.special import FromEnd, LastOfWeek, LastWeekday, NearestWeekday, NthOfWeek, Special

_WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_MONTHS = (
    "",
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_NUMBERS = tuple(map(str, range(60)))
_ORDINALS = ("", "first", "second", "third", "fourth", "fifth")
# More clock times than this read better as minutes and hours.
_MOST_TIMES = 4


def describe(spec: CalendarSpec) -> str:
    """One sentence, such as "At 09:00 on Monday to Friday, Europe/Paris time."."""
    sentence = _when(spec)
    if not spec.excluded:
        return sentence
    dates = "one excluded date" if len(spec.excluded) == 1 else f"{len(spec.excluded)} excluded dates"
    but = "moved to the next day from" if spec.on_excluded is OnExcluded.NEXT_DAY else "except on"
    return f"{sentence.removesuffix('.')}, {but} {dates}."


def _when(spec: CalendarSpec) -> str:
    zone = "UTC" if spec.timezone == "UTC" else f"{spec.timezone} time"
    match spec.kind:
        case Kind.CRON:
            rule = cron_rule(spec.expression)
            times, days = _times(rule), _days(rule)
            return f"{times}, {zone}." if _round_the_clock(rule) else f"{times} {days}, {zone}."
        case Kind.RATE:
            return f"Every {spec.expression.removeprefix('1 ')}."
        case Kind.AT:
            return f"Once, at {datetime.fromisoformat(spec.expression):%H:%M:%S on %Y-%m-%d}, {zone}."
        case _:
            assert_never(spec.kind)


def _times(rule: CronRule) -> str:
    minute, hour, *_ = rule.fields
    if len(minute.values) * len(hour.values) <= _MOST_TIMES:
        clock = [f"{h:02}:{m:02}" for h in sorted(hour.values) for m in sorted(minute.values)]
        return f"At {_listed(clock)}"
    hours = "every hour" if hour.full else f"{_plural('hour', hour)} {_spans(hour, _NUMBERS)}"
    if minute.full:
        return "Every minute" if hour.full else f"Every minute of {hours}"
    step = _even_step(minute)
    if step is not None:
        return f"Every {step} minutes" if hour.full else f"Every {step} minutes of {hours}"
    return f"At {_plural('minute', minute)} {_spans(minute, _NUMBERS)} of {hours}"


def _round_the_clock(rule: CronRule) -> bool:
    """Whether "every hour" or "every minute" has said it all, and "every day" would say it twice."""
    return rule.fields[1].full and rule.days.every_day


def _days(rule: CronRule) -> str:
    _, _, by_date, month, by_week = rule.fields
    months = "" if month.full else f" in {_spans(month, _MONTHS)}"
    if rule.days.all_days:
        return f"every day{months}"
    both = by_date.star or by_week.star
    if both and by_date.full:
        return f"on {_weekdays(by_week)}{months}"
    if both and by_week.full:
        return f"on {_dates(by_date)}{months}"
    joined = ", if it is" if both else ", or on"
    return f"on {_dates(by_date)}{joined} {_weekdays(by_week)}{',' if months else ''}{months}"


def _dates(field: Field) -> str:
    plain = [f"{_plural('day', field)} {_spans(field, _NUMBERS)} of the month"] if field.values else []
    return _listed([*plain, *_specials(field)])


def _weekdays(field: Field) -> str:
    plain = [_spans(field, _WEEKDAYS)] if field.values else []
    return _listed([*plain, *_specials(field)])


def _specials(field: Field) -> list[str]:
    return [_special(special) for special in sorted(field.specials, key=str)]


def _special(special: Special) -> str:
    match special:
        case FromEnd(back=0):
            return "the last day of the month"
        case FromEnd(back=back):
            return f"{back} {'day' if back == 1 else 'days'} before the last day of the month"
        case NearestWeekday(to=to):
            return f"the Monday to Friday nearest to day {to} of the month"
        case LastWeekday():
            return "the last Monday to Friday of the month"
        case LastOfWeek(weekday=weekday):
            return f"the last {_WEEKDAYS[weekday]} of the month"
        case NthOfWeek(weekday=weekday, nth=nth):
            return f"the {_ORDINALS[nth]} {_WEEKDAYS[weekday]} of the month"
        case _:
            assert_never(special)


def _even_step(minute: Field) -> int | None:
    """The step of minutes that are evenly spread over the hour from minute 0 on, if they are."""
    step = 60 // len(minute.values)
    return step if len(minute.values) > 1 and minute.values == frozenset(range(0, 60, step)) else None


def _spans(field: Field, words: tuple[str, ...]) -> str:
    """The plain values in words, three or more in a row as a span; weekdays begin with Monday."""
    values = sorted(field.values, key=lambda value: value or 7) if field.kind is DAY_OF_WEEK else sorted(field.values)
    spans: list[list[int]] = []
    for value in values:
        if spans and (value or 7) == spans[-1][-1] + 1:
            spans[-1].append(value or 7)
        else:
            spans.append([value])
    return _listed([text for span in spans for text in _span(span, words)])


def _span(span: list[int], words: tuple[str, ...]) -> list[str]:
    named = [words[value % 7] if words is _WEEKDAYS else words[value] for value in span]
    return [f"{named[0]} to {named[-1]}"] if len(named) >= 3 else named


def _plural(noun: str, field: Field) -> str:
    return noun if len(field.values) == 1 else f"{noun}s"


def _listed(parts: list[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last
