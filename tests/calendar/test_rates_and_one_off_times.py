"""Rates in real elapsed time, and one-off wall times."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler.calendar.occurrences import next_occurrence, occurrences, period_seconds
from scheduler.calendar.spec import Gap, Overlap, at, cron, rate
from scheduler.errors import InvalidExpression

START = datetime(2027, 3, 13, 12, 7, 5, tzinfo=UTC)
BEFORE = START - timedelta(seconds=1)

RATES = [
    ("10 seconds", "10 seconds", 10),
    ("60 seconds", "1 minute", 60),
    ("1 minute", "1 minute", 60),
    ("1 minutes", "1 minute", 60),
    (" 015\tMinutes ", "15 minutes", 900),
    ("90 minutes", "90 minutes", 5_400),
    ("24 hours", "1 day", 86_400),
    ("7 days", "7 days", 604_800),
    ("36500 days", "36500 days", 3_153_600_000),
]


@pytest.mark.parametrize(("text", "spelling", "seconds"), RATES)
def test_equal_periods_have_one_spelling(text: str, spelling: str, seconds: int) -> None:
    spec = rate(text, START)
    assert (spec.expression, spec.timezone, period_seconds(spec)) == (spelling, "UTC", seconds)
    assert next_occurrence(spec, START) == START + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "15",
        "minutes",
        "9 seconds",
        "0 minutes",
        "-5 minutes",
        "1.5 hours",
        "15m",
        "15minutes",
        "every 15 minutes",
        "rate(15 minutes)",
        "1 week",
        "٣ minutes",
        "15 minutes\n",
        "36501 days",
        "9" * 64 + " days",
        "9" * 4000 + " days",
    ],
)
def test_a_rate_that_is_not_one_is_refused_with_how_to_write_it(text: str) -> None:
    with pytest.raises(InvalidExpression, match=r"rate: .*write .*seconds") as refusal:
        rate(text, START)
    assert str(refusal.value).isprintable()


def test_the_first_is_the_start_itself_and_no_clock_change_moves_the_others() -> None:
    day = list(occurrences(rate("1 day", START), BEFORE, START + timedelta(days=3)))
    assert day == [START + timedelta(days=n) for n in range(4)]


def test_rates_that_meet_share_one_calendar() -> None:
    assert rate("15 minutes", START) == rate("900 seconds", START + timedelta(days=400, minutes=45))
    assert rate("15 minutes", START) != rate("15 minutes", START + timedelta(seconds=1))


def test_a_fraction_of_a_second_is_rounded_up_so_that_nothing_fires_early() -> None:
    assert next_occurrence(rate("1 hour", START - timedelta(microseconds=1)), BEFORE) == START


@given(seconds=st.integers(10, 10**6), ask=st.integers(0, 10**9))
def test_the_next_of_a_rate_is_on_its_lattice_and_within_one_period(seconds: int, ask: int) -> None:
    spec = rate(f"{seconds} seconds", START)
    asked = START + timedelta(microseconds=ask)
    found = next_occurrence(spec, asked)
    assert found is not None
    assert timedelta(0) < found - asked <= timedelta(seconds=seconds)
    assert (found - START) % timedelta(seconds=seconds) == timedelta(0)


ONE_OFFS = [
    ("2026-12-24T18:00:00", "Europe/Berlin", Gap.SHIFT, Overlap.FIRST, ["2026-12-24T17:00:00Z"]),
    ("2026-12-24T18:00:07", "UTC", Gap.SHIFT, Overlap.FIRST, ["2026-12-24T18:00:07Z"]),
    ("2027-03-14T02:30:00", "America/New_York", Gap.SHIFT, Overlap.FIRST, ["2027-03-14T07:00:00Z"]),
    ("2027-03-14T02:30:00", "America/New_York", Gap.SKIP, Overlap.FIRST, []),
    ("2026-11-01T01:30:00", "America/New_York", Gap.SHIFT, Overlap.FIRST, ["2026-11-01T05:30:00Z"]),
    ("2026-11-01T01:30:00", "America/New_York", Gap.SHIFT, Overlap.LAST, ["2026-11-01T06:30:00Z"]),
    (
        "2026-11-01T01:30:00",
        "America/New_York",
        Gap.SHIFT,
        Overlap.BOTH,
        ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"],
    ),
    ("2011-12-30T12:00:00", "Pacific/Apia", Gap.SHIFT, Overlap.FIRST, ["2011-12-30T10:00:00Z"]),
    ("9899-12-31T23:59:59", "Pacific/Kiritimati", Gap.SHIFT, Overlap.FIRST, ["9899-12-31T09:59:59Z"]),
]


@pytest.mark.parametrize(("text", "timezone", "gap", "overlap", "expected"), ONE_OFFS)
def test_a_one_off_fires_at_its_wall_time_under_the_policies(
    text: str, timezone: str, gap: Gap, overlap: Overlap, expected: list[str]
) -> None:
    spec = at(text, timezone, gap=gap, overlap=overlap)
    instants = [datetime.fromisoformat(instant) for instant in expected]
    long_before, for_ever = datetime(1970, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert list(occurrences(spec, long_before, for_ever)) == instants
    asked = long_before
    for instant in instants:
        assert next_occurrence(spec, asked) == instant
        asked = instant
    assert next_occurrence(spec, asked) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-12-24",
        "2026-12-24T18:00",
        "2026-12-24 18:00:00",
        "2026-12-24T18:00:00Z",
        "2026-12-24T18:00:00+01:00",
        "2026-12-24T18:00:00.5",
        "2026-12-24T24:00:00",
        "2026-12-24T18:00:60",
        "2026-02-29T00:00:00",
        "2026-13-01T00:00:00",
        "٢026-12-24T18:00:00",
        "2026-12-24T18:00:00\n",
        "2026-W52-4T18:00:00",
        "1969-12-31T23:59:59",
        "9900-01-01T00:00:00",
        "0000-00-00T00:00:00",
        "now",
        "x" * 4096,
    ],
)
def test_a_wall_time_that_is_not_one_is_refused(text: str) -> None:
    with pytest.raises(InvalidExpression, match=r"^at: ") as refusal:
        at(text, "UTC")
    assert str(refusal.value).isprintable()


def test_naive_instants_are_refused() -> None:
    naive, spec = datetime(2027, 1, 1), cron("0 0 * * *", "UTC")  # noqa: DTZ001
    with pytest.raises(ValueError, match="aware"):
        next_occurrence(spec, naive)
    with pytest.raises(ValueError, match="aware"):
        occurrences(spec, START, naive)
    with pytest.raises(ValueError, match="aware"):
        rate("1 hour", naive)


def test_any_offset_may_ask_and_the_answer_is_in_utc() -> None:
    asked = datetime(2027, 1, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    found = next_occurrence(cron("0 0 * * *", "UTC"), asked)
    assert found is not None
    assert found.tzinfo is UTC
    assert found == datetime(2027, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("year", [1, 1969, 9899, 9999])
def test_time_has_ends_that_can_be_asked_about(year: int) -> None:
    asked = datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)
    for spec in (cron("* * * * *", "UTC"), rate("1 day", START), at("2026-12-24T18:00:00", "UTC")):
        found = next_occurrence(spec, asked)
        assert found is None or datetime(1970, 1, 1, tzinfo=UTC) <= found <= datetime(9900, 1, 1, tzinfo=UTC)
