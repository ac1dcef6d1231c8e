"""Jitter is the same for the same occurrence, stays below its limit, and spreads."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from scheduler.calendar.jitter import jitter_seconds

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
