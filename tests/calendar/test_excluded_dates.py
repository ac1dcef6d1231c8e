"""Excluded dates: their occurrences do not fire, or move to the next date that is not excluded; both can be listed."""

import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from scheduler.calendar.occurrences import count_occurrences, last_occurrence, next_occurrence, occurrences
from scheduler.calendar.preview import preview
from scheduler.calendar.spec import CalendarSpec, OnExcluded, at, cron, excluded_only, rate, without_dates
from scheduler.errors import InvalidExpression

PARIS, YORK = "Europe/Paris", "America/New_York"
START = datetime(2026, 12, 20, tzinfo=UTC)
CHRISTMAS = (date(2026, 12, 25), date(2026, 12, 26))
SKIP, NEXT_DAY = OnExcluded.SKIP, OnExcluded.NEXT_DAY


def instants(spec: CalendarSpec, days: int = 12, start: datetime = START) -> list[str]:
    """The occurrences as `12-24 09:00`, in UTC."""
    return [f"{each:%m-%d %H:%M}" for each in occurrences(spec, start, start + timedelta(days=days))]


def daily(on_excluded: OnExcluded, expression: str = "0 9 * * *", zone: str = "UTC") -> CalendarSpec:
    return without_dates(cron(expression, zone), CHRISTMAS, on_excluded, zone)


def test_a_job_does_not_fire_on_an_excluded_date() -> None:
    fired = instants(daily(SKIP))
    assert "12-25 09:00" not in fired
    assert "12-26 09:00" not in fired
    assert len(fired) == 10


def test_a_date_is_the_zones_own() -> None:
    spec = without_dates(cron("0 20 * * *", YORK), [date(2026, 12, 25)], SKIP, YORK)
    fired = instants(spec)
    # At 20:00 on Christmas Day in New York it is the 26th in UTC.
    assert "12-25 01:00" in fired
    assert "12-26 01:00" not in fired


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0 9 25 12 *", ["12-27 09:00"]),
        ("0 9 26 12 *", ["12-27 09:00"]),
        ("0 9 25,26,27 12 *", ["12-27 09:00"]),
        ("0 9,17 25 12 *", ["12-27 09:00", "12-27 17:00"]),
        ("30 6 24 12 *", ["12-24 06:30"]),
    ],
)
def test_an_occurrence_moves_to_the_next_date_that_is_not_excluded_and_two_that_meet_are_one(
    expression: str, expected: list[str]
) -> None:
    assert instants(daily(NEXT_DAY, expression)) == expected


def test_a_moved_one_off_fires_on_the_next_day_and_a_skipped_one_never() -> None:
    once = at("2026-12-25T18:00:00", PARIS)
    assert instants(without_dates(once, CHRISTMAS, NEXT_DAY, PARIS)) == ["12-27 17:00"]
    assert next_occurrence(without_dates(once, CHRISTMAS, SKIP, PARIS), START) is None


def test_a_rate_knows_dates_in_a_zone_and_keeps_its_beat_around_them() -> None:
    spec = without_dates(rate("6 hours", START), [date(2026, 12, 25)], SKIP, YORK)
    fired = instants(spec)
    # Christmas Day in New York is 05:00Z to 05:00Z.
    assert [each for each in fired if each.startswith(("12-25", "12-26"))] == [
        "12-25 00:00",
        "12-26 06:00",
        "12-26 12:00",
        "12-26 18:00",
    ]


def test_a_rate_leaps_over_years_of_excluded_dates() -> None:
    dates = [date(2026, 12, 20) + timedelta(days=n) for n in range(1_000)]
    spec = without_dates(rate("10 seconds", START), dates, SKIP, "UTC")
    assert next_occurrence(spec, START) == datetime(2029, 9, 15, tzinfo=UTC)


def test_a_rate_has_no_wall_time_to_move() -> None:
    with pytest.raises(InvalidExpression, match="write skip"):
        without_dates(rate("1 day", START), CHRISTMAS, NEXT_DAY, "UTC")


def test_a_wall_time_in_a_gap_or_twice_belongs_to_its_date() -> None:
    gap, fall = date(2027, 3, 14), date(2027, 11, 7)
    spring = without_dates(cron("30 2 * * *", YORK), [gap], SKIP, YORK)
    assert instants(spring, 2, datetime(2027, 3, 13, 8, tzinfo=UTC)) == ["03-15 06:30"]
    autumn = without_dates(cron("*/30 * * * *", YORK), [fall], SKIP, YORK)
    left_out = list(
        occurrences(
            excluded_only(autumn), datetime(2027, 11, 7, 3, 59, tzinfo=UTC), datetime(2027, 11, 8, 5, tzinfo=UTC)
        )
    )
    assert len(left_out) == 50


@pytest.mark.parametrize("seed", range(30))
def test_what_fires_and_what_is_left_out_are_together_what_fires_without_exclusions(seed: int) -> None:
    chance = random.Random(seed)
    zone = chance.choice([PARIS, YORK, "UTC", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia"])
    start = datetime(2027, chance.randint(1, 12), chance.randint(1, 28), tzinfo=UTC)
    dates = {start.date() + timedelta(days=chance.randint(0, 30)) for _ in range(chance.randint(1, 12))}
    whole = chance.choice(
        [cron("7,37 */5 * * *", zone), cron("15 0,23 * * *", zone), rate("7 hours", start), cron("0 12 * * 1-5", zone)]
    )
    spec = without_dates(whole, dates, SKIP, zone)
    end = start + timedelta(days=31)
    everything = list(occurrences(whole, start, end))
    fired, left_out = list(occurrences(spec, start, end)), list(occurrences(excluded_only(spec), start, end))
    assert sorted(fired + left_out) == everything
    local = {each: each.astimezone(ZoneInfo(zone)).date() for each in everything}
    assert {local[each] for each in left_out} <= dates
    assert not {local[each] for each in fired} & dates
    for counted in (whole, spec, excluded_only(spec)):
        listed = list(occurrences(counted, start, end))
        assert count_occurrences(counted, start, end) == len(listed)
        assert last_occurrence(counted, start, end) == (listed[-1] if listed else None)


def test_a_preview_lists_what_is_left_out_and_flags_it() -> None:
    shown = preview(daily(SKIP), datetime(2026, 12, 24, 8, tzinfo=UTC), 4)
    assert [(each.scheduled_for.day, each.excluded) for each in shown] == [
        (24, False),
        (25, True),
        (26, True),
        (27, False),
    ]
    moved = preview(daily(NEXT_DAY, "0 9 25 12 *"), START, 2)
    assert [(each.scheduled_for.day, each.excluded) for each in moved] == [(25, True), (27, False)]
    assert not any(each.dst_shifted for each in moved)
