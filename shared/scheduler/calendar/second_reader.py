"""A second reading of each expression, by croniter, before a schedule is made of it.

A misreading would fire wrongly for years, and no test of ours would know, having read it the same way. croniter shares no
code with us and has been tried by many; where it has the words, its answer must be ours.
"""

from datetime import UTC, datetime
from functools import lru_cache

from scheduler.calendar.grammar import CronRule, cron_rule
from scheduler.errors import InvalidExpression

# A leap year's first day, so that four answers see a February of each length.
_START = int(datetime(2024, 1, 1, tzinfo=UTC).timestamp())
_ANSWERS = 4


@lru_cache(maxsize=4096)
def confirm(expression: str) -> None:
    """InvalidExpression if the readings of a canonical expression differ.

    Both are of the wall clock: croniter is told of no zone. Under a millisecond as a rule, once an expression.
    """
    rule = cron_rule(expression)
    if not _in_its_words(rule):
        return
    # Here and not above: only what stores an expression needs it.
    from croniter import croniter  # noqa: PLC0415

    lists = (",".join(map(str, sorted(field.values))) for field in rule.fields)
    theirs = croniter(" ".join(lists), float(_START), day_or=not rule.days.intersect)
    ours = _START
    for _ in range(_ANSWERS):
        ours = rule.following(ours + 1)
        if theirs.get_next(float) != ours:
            raise InvalidExpression(
                "cron", "two readers of cron do not agree about this; write its fields as plain lists"
            )


def _in_its_words(rule: CronRule) -> bool:
    """It knows no `LW`, `L-n`, `nL` or mixed list, and takes a list of all days for a star, which turns or into and."""
    _, _, by_date, _, by_week = rule.fields
    return not (by_date.specials or by_week.specials) and (rule.days.intersect or not rule.days.all_days)
