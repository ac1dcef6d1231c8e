"""No difference between the calendar and a walk over real time, for random expressions, zones and policies."""

from datetime import UTC, date, datetime, timedelta

import pytest
from brute_walk import Change, Meaning, changes, walk
from expressions import Expression, expressions
from hypothesis import given, settings
from hypothesis import strategies as st
from scheduler.calendar.occurrences import next_occurrence, occurrences
from scheduler.calendar.spec import Gap, Overlap, at, cron
from scheduler.errors import InvalidExpression

POLICIES = st.tuples(st.sampled_from(Gap), st.sampled_from(Overlap))


def test_the_walk_sees_every_kind_of_change() -> None:
    sizes = {change.after - change.before for change in changes()}
    assert {timedelta(minutes=m) for m in (-120, -60, -30, 30, 60, 120)} <= sizes
    assert max(map(abs, sizes)) <= timedelta(hours=2)
    assert len({change.zone for change in changes()}) > 200


def _around(change: Change, before: timedelta, after: timedelta) -> tuple[datetime, datetime]:
    return change.at - before, change.at + after


@settings(max_examples=300, deadline=None, database=None)
@given(
    expression=expressions(),
    change=st.sampled_from(changes()),
    policy=POLICIES,
    before=st.timedeltas(timedelta(0), timedelta(hours=30)),
    after=st.timedeltas(timedelta(0), timedelta(hours=30)),
)
def test_any_expression_around_any_change_of_any_zone(
    expression: Expression, change: Change, policy: tuple[Gap, Overlap], before: timedelta, after: timedelta
) -> None:
    low, high = _around(change, before, after)
    try:
        spec = cron(expression.text, change.zone, gap=policy[0], overlap=policy[1])
    except InvalidExpression:
        assert not any(expression.on_day(day) for day in _leap_cycle()), expression.text
        return
    assert list(occurrences(spec, low, high)) == walk(expression.meaning, change.zone, policy, low, high)


def _leap_cycle() -> list[date]:
    """The 28 years in which each date falls on each weekday."""
    return [date(2000, 1, 1) + timedelta(days=n) for n in range(28 * 366)]


def _distinct_changes() -> list[Change]:
    """One zone for each change that some zones share."""
    return list({(change.at, change.before, change.after): change for change in changes()}.values())


@pytest.mark.parametrize("overlap", Overlap)
@pytest.mark.parametrize("gap", Gap)
def test_each_minute_of_the_day_around_every_change_there_is(gap: Gap, overlap: Overlap) -> None:
    meaning = Meaning(matches=lambda _: True, wildcard=False)
    for change in _distinct_changes():
        low, high = _around(change, timedelta(hours=2, minutes=5), timedelta(hours=2, minutes=5))
        spec = cron("0-59 0-23 * * *", change.zone, gap=gap, overlap=overlap)
        assert list(occurrences(spec, low, high)) == walk(meaning, change.zone, (gap, overlap), low, high), change


@settings(max_examples=200, deadline=None, database=None)
@given(
    change=st.sampled_from(changes()),
    policy=POLICIES,
    minutes=st.integers(-200, 200),
    after=st.timedeltas(timedelta(hours=-30), timedelta(hours=4)),
)
def test_one_wall_time_near_any_change(
    change: Change, policy: tuple[Gap, Overlap], minutes: int, after: timedelta
) -> None:
    named = (change.at + change.after + timedelta(minutes=minutes)).replace(tzinfo=None)
    spec = at(named.isoformat(), change.zone, gap=policy[0], overlap=policy[1])
    low, high = change.at + after, change.at + timedelta(hours=8)
    expected = walk(
        Meaning(matches=lambda wall: wall == named, wildcard=False), change.zone, policy, min(low, high), high
    )
    assert list(occurrences(spec, low, high)) == expected
    assert next_occurrence(spec, low) == (expected[0] if expected else None)


@settings(max_examples=200, deadline=None, database=None)
@given(expression=expressions(), start=st.dates(date(2024, 1, 1), date(2098, 1, 1)))
def test_the_days_of_any_expression_over_three_years(expression: Expression, start: date) -> None:
    days = [start + timedelta(days=n) for n in range(1, 3 * 366)]
    try:
        spec = cron("0 0 " + " ".join(expression.text.split()[2:]), "UTC")
    except InvalidExpression:
        return
    first, last = (datetime.combine(day, datetime.min.time(), UTC) for day in (start, days[-1]))
    assert [instant.date() for instant in occurrences(spec, first, last)] == [
        day for day in days if expression.on_day(day)
    ]


@settings(max_examples=100, deadline=None, database=None)
@given(expression=expressions(), change=st.sampled_from(changes()), policy=POLICIES)
def test_asking_again_from_each_instant_gives_the_same_list(
    expression: Expression, change: Change, policy: tuple[Gap, Overlap]
) -> None:
    try:
        spec = cron(expression.text, change.zone, gap=policy[0], overlap=policy[1])
    except InvalidExpression:
        return
    low, high = _around(change, timedelta(hours=3), timedelta(hours=3))
    whole = list(occurrences(spec, low, high))
    assert whole == sorted(set(whole))
    for instant, following in zip([low, *whole], whole, strict=False):
        assert next_occurrence(spec, instant) == following
