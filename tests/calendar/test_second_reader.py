"""No schedule is made of an expression that croniter reads otherwise, where it has the words for it."""

import pytest
from expressions import Expression, expressions
from hypothesis import given, settings
from scheduler.calendar import second_reader
from scheduler.calendar.grammar import CronRule, parse_cron
from scheduler.calendar.spec import cron
from scheduler.errors import InvalidExpression


@settings(max_examples=300, deadline=None, database=None)
@given(expression=expressions())
def test_the_two_readers_agree_about_any_expression(expression: Expression) -> None:
    try:
        rule = parse_cron(expression.text)
    except InvalidExpression:
        return
    second_reader.confirm(rule.expression)


@pytest.mark.parametrize("expression", ["0 0 1-31 * mon", "0 0 13 * 0-6", "0 0 L,15W * *", "0 0 * * mon,5L"])
def test_what_it_has_no_words_for_is_taken_on_our_word(expression: str) -> None:
    assert cron(expression, "UTC").expression


def test_a_misreading_of_ours_is_refused_and_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    read = CronRule.following
    monkeypatch.setattr(CronRule, "following", lambda rule, wall: read(rule, wall) + 86_400)
    with pytest.raises(InvalidExpression, match="two readers of cron do not agree"):
        cron("0 0 17 5 *", "UTC")
