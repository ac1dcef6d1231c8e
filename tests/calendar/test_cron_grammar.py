"""What the cron grammar refuses, with where and how to write it; and the one spelling of what it takes."""

import pytest
from expressions import Expression, expressions
from hypothesis import given, settings
from scheduler.calendar.grammar import parse_cron
from scheduler.calendar.spec import cron
from scheduler.errors import InvalidExpression

# Text, field, position, and a part of the advice.
REFUSED = [
    ("0 0 30 2 *", "day-of-month", 4, "no year has such a day"),
    ("0 0 31 2 *", "day-of-month", 4, "no year has such a day"),
    ("0 0 31 4,6,9,11 *", "day-of-month", 4, "no year has such a day"),
    ("0 0 15W * */6", "day-of-month", 4, "no year has such a day"),
    ("60 * * * *", "minute", 0, "write 0 to 59"),
    ("* 24 * * *", "hour", 2, "write 0 to 23"),
    ("* * 0 * *", "day-of-month", 4, "write 1 to 31"),
    ("* * 32 * *", "day-of-month", 4, "write 1 to 31"),
    ("* * * 0 *", "month", 6, "write 1 to 12"),
    ("* * * 13 *", "month", 6, "write 1 to 12"),
    ("* * * * 8", "day-of-week", 8, "write 0 to 7"),
    ("0 0 * * 1#6", "day-of-week", 10, "from 1 to 5"),
    ("0 0 * * 1#0", "day-of-week", 10, "from 1 to 5"),
    ("100/5 * * * *", "minute", 0, "write 0 to 59"),
    ("0-99999999/1 * * * *", "minute", 2, "write 0 to 59"),
    ("0-9999999999 * * * *", "minute", 2, "write 0 to 59"),
    ("0 */99999999999999 * * *", "hour", 4, "write 1 to 24"),
    ("*/0 * * * *", "minute", 2, "write 1 to 60"),
    ("*/90 * * * *", "minute", 2, "write 1 to 60"),
    ("*/ * * * *", "minute", 2, "a step from 1 to 60"),
    ("0 1-5/ * * *", "hour", 6, "a step from 1 to 24"),
    ("0 0 */-5 * *", "day-of-month", 6, "a step from 1 to 31"),
    ("0 0 * 1//2 *", "month", 8, "a step from 1 to 12"),
    ("0 0 * * */5.5", "day-of-week", 10, "a step from 1 to 7"),
    ("0 0 * * */8", "day-of-week", 10, "write 1 to 7"),
    ("0 0 */32 * *", "day-of-month", 6, "write 1 to 31"),
    ("0 15 9 * * 1", "cron", 11, "'15 9 * * 1'"),
    ("* * * * * *", "cron", 10, "there are no seconds"),
    ("0 0 1 1 0 0 2024", "cron", 10, "no years"),
    ("0 0 12 1 1 ? 2030", "cron", 11, "'0 12 1 1 *'"),
    ("0 12 * * ? 2030", "cron", 11, "'0 12 * * *', with weekdays from 0"),
    ("0,,5 * * * *", "minute", 2, "missing"),
    ("5, * * * *", "minute", 2, "missing"),
    ("1-5-9 * * * *", "minute", 2, "not a value"),
    ("*/5/2 * * * *", "minute", 2, "not a value"),
    ("/5 * * * *", "minute", 0, "missing"),
    ("-1 * * * *", "minute", 0, "missing"),
    ("+5 * * * *", "minute", 0, "not a value"),
    ("5.0 * * * *", "minute", 0, "not a value"),
    ("1_0 * * * *", "minute", 0, "not a value"),
    ("*-5 * * * *", "minute", 0, "not a value"),
    ("H * * * *", "minute", 0, "jitter_seconds"),
    ("H(0-29)/10 * * * *", "minute", 0, "jitter_seconds"),
    ("0 R * * *", "hour", 2, "jitter_seconds"),
    ("0~30 * * * *", "minute", 0, "jitter_seconds"),
    ("** * * * *", "minute", 0, "not a value"),
    ("5* * * * *", "minute", 0, "not a value"),
    ("1e1 * * * *", "minute", 0, "not a value"),
    ("0 0x1 * * *", "hour", 2, "not a value"),
    ("0 0 * * 1;2", "day-of-week", 8, "not a value"),
    ("0 0 * * MON-", "day-of-week", 12, "missing"),
    ("0 0 1 jan-foo *", "month", 10, "jan to dec"),
    ("0 0 1 january *", "month", 6, "jan to dec"),
    ("٣ * * * *", "minute", 0, "not a value"),
    ("0 0 ７ * *", "day-of-month", 4, "not a value"),
    ("0 0 * * ſun", "day-of-week", 8, "not a value"),
    ("0 0 * * ſun#1", "day-of-week", 8, "not a value"),
    ("\u00a00 0 * * *", "minute", 0, "not a value"),
    ("0 0 \ud800 * *", "day-of-month", 4, "not a value"),
    ("0 0 * * MON_FRI", "day-of-week", 8, "sun to sat"),
    ("0 0 * * mondays", "day-of-week", 8, "sun to sat"),
    ("0 0 * mai *", "month", 6, "jan to dec"),
    ("mon 0 * * *", "minute", 0, "write 0 to 59"),
    ("0 0 * *", "cron", None, "4 fields"),
    ("0", "cron", None, "1 field;"),
    ("", "cron", None, "no field"),
    ("@reboot", "cron", 0, "@hourly"),
    ("@every 5m", "cron", 0, '{"rate": "5 minutes"}'),
    ("TZ=Asia/Tokyo 0 0 * * *", "cron", 0, "`timezone`"),
    (" CRON_TZ=UTC 0 0 * * *", "cron", 1, "`timezone`"),
    ("cron(0 12 * * ? *)", "cron", 0, "without cron(…)"),
    ("rate(5 minutes)", "cron", 0, '{"rate": …}'),
    ("0 0 * * *\n0 1 * * *", "cron", 9, "one line"),
    ("0 0 * * * rm -rf /", "cron", 10, "8 fields"),
    ("0 0 ? * 1", "day-of-month", 4, "write *"),
    ("0 0 * * ?", "day-of-week", 8, "write *"),
    ("0 0 * * fri-mon", "day-of-week", 8, "fri,sat,sun,mon"),
    ("0 0 * * fri-sun", "day-of-week", 8, "fri,sat,sun"),
    ("0 0 * * 7-1", "day-of-week", 8, "write 0,1"),
    ("0 22-2 * * *", "hour", 2, "22,23,0,1,2"),
    ("5-1 * * * *", "minute", 0, "write 5-59,0,1"),
    ("0 0 31-30 * *", "day-of-month", 4, "write 31,1-30"),
    ("0 0 * * 6-0", "day-of-week", 8, "write 6,0"),
    ("0 0 * * sat-sun", "day-of-week", 8, "write sat,sun"),
    ("0 22-2/2 * * *", "hour", 2, "22,0,2"),
    ("0 0 * nov-feb *", "month", 6, "nov,dec,jan,feb"),
    ("0 0 * * 7/2", "day-of-week", 8, "0/n"),
    ("0 0 W * *", "day-of-month", 4, "15W"),
    ("0 0 32W * *", "day-of-month", 4, "write 1 to 31"),
    ("0 0 1-5W * *", "day-of-month", 4, "15W"),
    ("0 0 L/2 * *", "day-of-month", 4, "L-3"),
    ("0 0 L-31 * *", "day-of-month", 6, "0 to 30"),
    ("0 0 L-1W * *", "day-of-month", 6, "0 to 30"),
    ("0 0 L- * *", "day-of-month", 6, "0 to 30"),
    ("0 0 L+1 * *", "day-of-month", 4, "L-3"),
    ("0 0 1-L * *", "day-of-month", 6, "not a value"),
    ("0 0 0W * *", "day-of-month", 4, "write 1 to 31"),
    ("0 0 31W 2,4 *", "day-of-month", 4, "no year has such a day"),
    ("0 0 L-29 2 *", "day-of-month", 4, "no year has such a day"),
    ("0 0 * * 1W", "day-of-week", 8, "15W"),
    ("0 0 * * LW", "day-of-week", 8, "5L"),
    ("0 0 * * 5L/2", "day-of-week", 8, "not a value"),
    ("0 0 * * 8#1", "day-of-week", 8, "write 0 to 7"),
    ("0 0 * * 1#2#3", "day-of-week", 10, "from 1 to 5"),
    ("0 0 1#1 * *", "day-of-month", 4, "not a value"),
    ("0 0 * * L", "day-of-week", 8, "5L"),
    ("0 0 * * L5", "day-of-week", 8, "5L"),
    ("0 0 * * 1-3#2", "day-of-week", 8, "not a value"),
    ("0 0 * * mon#", "day-of-week", 12, "from 1 to 5"),
    ("0 L * * *", "hour", 2, "not a value"),
    ("0 0 * * 1" + " " * 4096, "cron", None, "4096"),
]


@pytest.mark.parametrize(("text", "field", "position", "advice"), REFUSED)
def test_it_says_what_is_wrong_where_and_what_to_write(
    text: str, field: str, position: int | None, advice: str
) -> None:
    with pytest.raises(InvalidExpression) as refusal:
        cron(text, "UTC")
    assert (refusal.value.field, refusal.value.position) == (field, position)
    assert advice in refusal.value.detail
    assert str(refusal.value).isprintable()


# Texts that mean the same, and the spelling of it.
SPELLINGS = [
    ("00 007 * * Sun", "0 7 * * 0"),
    (" 5\t4  *  * * ", "5 4 * * *"),
    ("0 0 * * 7", "0 0 * * 0"),
    ("0 0 * * 5-7", "0 0 * * 0,5,6"),
    ("0 0 * * 0-7", "0 0 * * 0-6"),
    ("0 0 * JAN-mar *", "0 0 * 1-3 *"),
    ("0,15,30,45 0 * * *", "0,15,30,45 0 * * *"),
    ("0-59/15 0 * * *", "0,15,30,45 0 * * *"),
    ("0/15 0 * * *", "0,15,30,45 0 * * *"),
    ("*/15 0 * * *", "*/15 0 * * *"),
    ("*/1 * * * *", "* * * * *"),
    ("*,5 * * * *", "* * * * *"),
    ("*/2,4 * * * *", "*/2 * * * *"),
    ("*/60 */24 * * *", "*/60 */24 * * *"),
    ("0-59 0-23 * * *", "0-59 0-23 * * *"),
    ("5,*  * * * *", "0-59 * * * *"),
    ("8-8/2 3,2,1,1 * * *", "8 1-3 * * *"),
    ("0 0 l,lw,L-0,l-03,015w * *", "0 0 15W,L,L-3,LW * *"),
    ("0 0 * * mon#02,fri,7L", "0 0 * * 5,0L,1#2"),
    ("@hourly", "0 * * * *"),
    ("@Daily", "0 0 * * *"),
    (" @midnight ", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
]


@pytest.mark.parametrize(("text", "spelling"), SPELLINGS)
def test_equal_meanings_have_one_spelling(text: str, spelling: str) -> None:
    assert cron(text, "UTC").expression == spelling
    assert cron(text, "UTC") == cron(spelling, "UTC")


@settings(max_examples=200, deadline=None, database=None)
@given(expression=expressions())
def test_the_spelling_of_any_expression_means_the_same_and_is_its_own_spelling(expression: Expression) -> None:
    try:
        first = parse_cron(expression.text)
    except InvalidExpression:
        return
    second = parse_cron(first.expression)
    assert second.expression == first.expression
    assert (second.wildcard, second.days) == (first.wildcard, first.days)
    assert [second.following(wall) for wall in range(0, 10**6, 4_321)] == [
        first.following(wall) for wall in range(0, 10**6, 4_321)
    ]
