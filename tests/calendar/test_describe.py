"""A calendar in a sentence."""

from datetime import UTC, datetime

import pytest
from expressions import Expression, expressions
from hypothesis import given, settings
from scheduler.calendar.describe import describe
from scheduler.calendar.spec import at, cron, rate
from scheduler.errors import InvalidExpression

NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)
SENTENCES = [
    ("* * * * *", "Every minute, UTC."),
    ("*/5 * * * *", "Every 5 minutes, UTC."),
    ("*/25 * * * *", "At minutes 0, 25 and 50 of every hour, UTC."),
    ("15 * * * *", "At minute 15 of every hour, UTC."),
    ("15 * * * 1-5", "At minute 15 of every hour on Monday to Friday, UTC."),
    ("* 2 * * *", "Every minute of hour 2 every day, UTC."),
    ("*/15 9-17 * * *", "Every 15 minutes of hours 9 to 17 every day, UTC."),
    ("30 2 * * *", "At 02:30 every day, UTC."),
    ("0,30 8,20 * * 6,0", "At 08:00, 08:30, 20:00 and 20:30 on Saturday and Sunday, UTC."),
    ("0 0 * * 5-7", "At 00:00 on Friday to Sunday, UTC."),
    ("0 0 29 2 *", "At 00:00 on day 29 of the month in February, UTC."),
    ("0 0 * 6-8,12 *", "At 00:00 every day in June to August and December, UTC."),
    ("0 0 1-31 * mon", "At 00:00 every day, UTC."),
    ("0 0 13,14 * 5", "At 00:00 on days 13 and 14 of the month, or on Friday, UTC."),
    (
        "0 0 */15 3 1#3",
        "At 00:00 on days 1, 16 and 31 of the month, if it is the third Monday of the month, in March, UTC.",
    ),
    ("0 0 L,L-1 * *", "At 00:00 on the last day of the month and 1 day before the last day of the month, UTC."),
    ("0 0 15W * *", "At 00:00 on the Monday to Friday nearest to day 15 of the month, UTC."),
    ("0 0 LW * *", "At 00:00 on the last Monday to Friday of the month, UTC."),
    ("0 0 * * 5L", "At 00:00 on the last Friday of the month, UTC."),
]


@pytest.mark.parametrize(("expression", "sentence"), SENTENCES)
def test_a_cron_expression_reads(expression: str, sentence: str) -> None:
    assert describe(cron(expression, "UTC")) == sentence


def test_a_zone_is_named_and_rates_and_one_offs_read_too() -> None:
    assert describe(cron("0 9 * * *", "Europe/Paris")) == "At 09:00 every day, Europe/Paris time."
    assert describe(rate("15 minutes", NOON)) == "Every 15 minutes."
    assert describe(rate("1 hour", NOON)) == "Every hour."
    assert describe(at("2026-12-24T18:00:00", "UTC")) == "Once, at 18:00:00 on 2026-12-24, UTC."


@settings(max_examples=200, deadline=None, database=None)
@given(expression=expressions())
def test_any_expression_has_one_sentence(expression: Expression) -> None:
    try:
        sentence = describe(cron(expression.text, "UTC"))
    except InvalidExpression:
        return
    assert sentence.endswith(", UTC.")
    assert sentence.count(".") == 1
    assert "  " not in sentence
