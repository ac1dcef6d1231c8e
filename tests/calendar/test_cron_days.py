"""Which days and times an expression means: cases from the field."""

from datetime import datetime

import pytest
from day_cases import DAYS
from scheduler.calendar.occurrences import next_occurrence, occurrences
from scheduler.calendar.spec import cron

# Expression, zone, asked after, the next three.
CASES = [
    # A leading star leaves day-of-month unrestricted, so both are to be met.
    pytest.param(
        "0 16 */2 * SAT",
        "UTC",
        "2026-12-01T00:00:00Z",
        "2026-12-05T16:00:00Z 2026-12-19T16:00:00Z 2027-01-09T16:00:00Z",
        id="cal-02",
    ),
    # 1-31/2 has no star: odd days, or Saturdays.
    pytest.param(
        "0 16 1-31/2 * SAT",
        "UTC",
        "2026-12-01T00:00:00Z",
        "2026-12-01T16:00:00Z 2026-12-03T16:00:00Z 2026-12-05T16:00:00Z",
        id="cal-03",
    ),
    # Leap years only.
    pytest.param(
        "15 22 29 2 *",
        "UTC",
        "2027-01-01T00:00:00Z",
        "2028-02-29T22:15:00Z 2032-02-29T22:15:00Z 2036-02-29T22:15:00Z",
        id="cal-06",
    ),
    # 2100 is no leap year.
    pytest.param(
        "0 9 29 2 *",
        "UTC",
        "2092-03-01T00:00:00Z",
        "2096-02-29T09:00:00Z 2104-02-29T09:00:00Z 2108-02-29T09:00:00Z",
        id="cal-07",
    ),
    # Days 1, 11, 21 and 31; February has no 31st.
    pytest.param(
        "0 0 */10 * *",
        "UTC",
        "2027-02-22T00:00:00Z",
        "2027-03-01T00:00:00Z 2027-03-11T00:00:00Z 2027-03-21T00:00:00Z",
        id="cal-09",
    ),
    # Across the end of the year.
    pytest.param(
        "0 0 1 1 *",
        "UTC",
        "2026-12-01T00:01:00Z",
        "2027-01-01T00:00:00Z 2028-01-01T00:00:00Z 2029-01-01T00:00:00Z",
        id="cal-11",
    ),
    # Months without a 31st are passed over.
    pytest.param(
        "5 4 31 * *",
        "UTC",
        "2027-01-31T04:05:00Z",
        "2027-03-31T04:05:00Z 2027-05-31T04:05:00Z 2027-07-31T04:05:00Z",
        id="cal-12",
    ),
    # The month"s last midnight, on the local calendar.
    pytest.param(
        "0 0 L * *",
        "Europe/Helsinki",
        "2027-03-30T12:00:00Z",
        "2027-03-30T21:00:00Z 2027-04-29T21:00:00Z 2027-05-30T21:00:00Z",
        id="cal-13",
    ),
    # Months with five Mondays.
    pytest.param(
        "0 0 * * 1#5",
        "UTC",
        "2026-12-01T00:00:00Z",
        "2027-03-29T00:00:00Z 2027-05-31T00:00:00Z 2027-08-30T00:00:00Z",
        id="cal-14",
    ),
    # 7 is Sunday in a range too.
    pytest.param(
        "0 0 * * 5-7",
        "UTC",
        "2026-11-30T00:00:00Z",
        "2026-12-04T00:00:00Z 2026-12-05T00:00:00Z 2026-12-06T00:00:00Z",
        id="cal-15",
    ),
    # Monday, Wednesday, Friday and Sunday.
    pytest.param(
        "0 0 * * 1-7/2",
        "UTC",
        "2026-11-30T12:00:00Z",
        "2026-12-02T00:00:00Z 2026-12-04T00:00:00Z 2026-12-06T00:00:00Z",
        id="cal-16",
    ),
    # A step from a value ends with Saturday.
    pytest.param(
        "0 0 * * 1/2",
        "UTC",
        "2026-11-30T12:00:00Z",
        "2026-12-02T00:00:00Z 2026-12-04T00:00:00Z 2026-12-07T00:00:00Z",
        id="cal-18",
    ),
    # A range of one is one day.
    pytest.param(
        "30 6 * * 1-1",
        "UTC",
        "2026-12-01T00:00:00Z",
        "2026-12-07T06:30:00Z 2026-12-14T06:30:00Z 2026-12-21T06:30:00Z",
        id="cal-20",
    ),
    # A fraction of a second before is before.
    pytest.param(
        "0 9 * * *",
        "UTC",
        "2026-12-01T08:59:59.980000Z",
        "2026-12-01T09:00:00Z 2026-12-02T09:00:00Z 2026-12-03T09:00:00Z",
        id="cal-23",
    ),
    # The first of April on the local calendar.
    pytest.param(
        "30 * 1 * *",
        "Europe/Amsterdam",
        "2027-03-31T21:00:00Z",
        "2027-03-31T22:30:00Z 2027-03-31T23:30:00Z 2027-04-01T00:30:00Z",
        id="cal-24",
    ),
    # The month"s last Friday.
    pytest.param(
        "0 0 * * 5L",
        "UTC",
        "2026-11-30T00:00:00Z",
        "2026-12-25T00:00:00Z 2027-01-29T00:00:00Z 2027-02-26T00:00:00Z",
        id="cal-26",
    ),
    # A step can"t leave its range.
    pytest.param(
        "0 8-8/2 * * *",
        "UTC",
        "2026-12-01T00:00:00Z",
        "2026-12-01T08:00:00Z 2026-12-02T08:00:00Z 2026-12-03T08:00:00Z",
        id="cal-27",
    ),
    # Mondays, and the second Wednesday.
    pytest.param(
        "0 0 * * mon,wed#2",
        "UTC",
        "2026-11-30T12:00:00Z",
        "2026-12-07T00:00:00Z 2026-12-09T00:00:00Z 2026-12-14T00:00:00Z",
        id="cal-29",
    ),
]


@pytest.mark.parametrize(("expression", "timezone", "after", "expected"), CASES)
def test_the_next_three_are(expression: str, timezone: str, after: str, expected: str) -> None:
    spec = cron(expression, timezone)
    instants = [datetime.fromisoformat(text) for text in expected.split()]
    asked = datetime.fromisoformat(after)
    assert list(occurrences(spec, asked, instants[-1])) == instants
    for instant in instants:
        asked = next_occurrence(spec, asked) or asked
        assert asked == instant


@pytest.mark.parametrize(("expression", "after", "expected"), DAYS)
def test_the_next_days_are(expression: str, after: str, expected: str) -> None:
    instants = [datetime.fromisoformat(f"{day}T00:00:00Z") for day in expected.split()]
    found = list(occurrences(cron(expression, "UTC"), datetime.fromisoformat(f"{after}T00:00:00Z"), instants[-1]))
    assert found == instants
