"""Jitter is the same for the same occurrence, stays below its limit, and spreads."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from scheduler.calendar.jitter import jitter_limit, jitter_seconds
from scheduler.calendar.spec import at, cron, rate

SCHEDULE = UUID("0d9c4a52-8a06-4f5c-9c0e-0a4a3f6f2b11")
NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


def test_an_occurrence_has_one_jitter_for_ever() -> None:
    assert jitter_seconds(SCHEDULE, NOON, 59) == 24


def test_no_limit_is_no_jitter() -> None:
    assert jitter_seconds(SCHEDULE, NOON, 0) == 0


def test_it_spreads_over_the_whole_span_and_never_beyond() -> None:
    seen = {jitter_seconds(SCHEDULE, NOON + timedelta(minutes=n), 9) for n in range(200)}
    assert seen == set(range(10))


def test_schedules_at_the_same_instant_differ() -> None:
    assert len({jitter_seconds(UUID(int=n), NOON, 3_599) for n in range(100)}) > 90


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="early"):
        jitter_seconds(SCHEDULE, NOON, -1)


def test_the_limit_keeps_an_occurrence_before_the_next_even_where_a_clock_change_brings_them_closer() -> None:
    assert jitter_limit(rate("10 seconds", NOON), NOON, 60) == 9
    assert jitter_limit(cron("0 * * * *", "UTC"), NOON, 60) == 60
    # 02:30 does not exist and moves to 03:00, five minutes before the next.
    shifted = datetime(2027, 3, 14, 7, tzinfo=UTC)
    assert jitter_limit(cron("5,30 2,3 * * *", "America/New_York"), shifted, 600) == 299


def test_the_last_occurrence_may_have_all_that_was_wanted() -> None:
    assert jitter_limit(at("2027-01-01T12:00:00", "UTC"), NOON, 600) == 600
