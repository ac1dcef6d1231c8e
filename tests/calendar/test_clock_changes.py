"""What clock changes do to a schedule under the default policy: cases from the field."""

import itertools
from datetime import datetime, timedelta

import pytest
from change_cases import CHANGES
from scheduler.calendar import offsets
from scheduler.calendar.occurrences import next_occurrence, occurrences
from scheduler.calendar.spec import Gap, Overlap, cron

# Expression, zone, asked after, the next three.
CASES = [
    # 01:30 happens twice: the first.
    pytest.param(
        "30 1 * * *",
        "America/New_York",
        "2026-10-31T12:00:00Z",
        "2026-11-01T05:30:00Z 2026-11-02T06:30:00Z 2026-11-03T06:30:00Z",
        id="dst-fold-01",
    ),
    # A wildcard minute goes on through the repeated hour.
    pytest.param(
        "*/5 * * * *",
        "Europe/Zurich",
        "2026-10-25T00:50:00Z",
        "2026-10-25T00:55:00Z 2026-10-25T01:00:00Z 2026-10-25T01:05:00Z",
        id="dst-fold-04",
    ),
    # Asked from inside the second pass.
    pytest.param(
        "30 * * * *",
        "Europe/Helsinki",
        "2026-10-25T00:45:00Z",
        "2026-10-25T01:30:00Z 2026-10-25T02:30:00Z 2026-10-25T03:30:00Z",
        id="dst-fold-05",
    ),
    # A stepped range of hours is fixed times.
    pytest.param(
        "0 1-23/2 * * *",
        "Europe/London",
        "2026-10-24T23:00:00Z",
        "2026-10-25T00:00:00Z 2026-10-25T03:00:00Z 2026-10-25T05:00:00Z",
        id="dst-fold-06",
    ),
    # 0-23 is not a star.
    pytest.param(
        "30 0-23 * * *",
        "America/New_York",
        "2026-11-01T04:00:00Z",
        "2026-11-01T04:30:00Z 2026-11-01T05:30:00Z 2026-11-01T07:30:00Z",
        id="dst-fold-07",
    ),
    # One a day through a 23-hour day.
    pytest.param(
        "0 6 * * *",
        "America/New_York",
        "2027-03-12T08:00:00Z",
        "2027-03-12T11:00:00Z 2027-03-13T11:00:00Z 2027-03-14T10:00:00Z",
        id="dst-fold-09",
    ),
    # Thursday 23:30 twice, then the date goes on.
    pytest.param(
        "30 23 * * 4",
        "Africa/Cairo",
        "2027-10-28T00:00:00Z",
        "2027-10-28T20:30:00Z 2027-11-04T21:30:00Z 2027-11-11T21:30:00Z",
        id="dst-fold-13",
    ),
    # Asked from inside a repeated midnight hour.
    pytest.param(
        "15 0 * * *",
        "Atlantic/Azores",
        "2027-10-31T01:05:00Z",
        "2027-11-01T01:15:00Z 2027-11-02T01:15:00Z 2027-11-03T01:15:00Z",
        id="dst-fold-14",
    ),
    # A half-hour overlap in steady steps.
    pytest.param(
        "*/15 * * * *",
        "Australia/Lord_Howe",
        "2027-04-03T14:50:00Z",
        "2027-04-03T15:00:00Z 2027-04-03T15:15:00Z 2027-04-03T15:30:00Z",
        id="dst-fold-16",
    ),
    # A two-hour overlap.
    pytest.param(
        "0 2 * * *",
        "Antarctica/Troll",
        "2027-10-30T12:00:00Z",
        "2027-10-31T00:00:00Z 2027-11-01T02:00:00Z 2027-11-02T02:00:00Z",
        id="dst-fold-17",
    ),
    # Clocks back for Ramadan.
    pytest.param(
        "30 2 * * *",
        "Africa/Casablanca",
        "2026-02-14T12:00:00Z",
        "2026-02-15T01:30:00Z 2026-02-16T02:30:00Z 2026-02-17T02:30:00Z",
        id="dst-fold-19",
    ),
    # A 45-minute zone, every third hour.
    pytest.param(
        "59 */3 * * *",
        "Pacific/Chatham",
        "2026-04-04T12:59:00Z",
        "2026-04-04T15:14:00Z 2026-04-04T18:14:00Z 2026-04-04T21:14:00Z",
        id="dst-fold-22",
    ),
    # The half hour that a wildcard hour really sees twice.
    pytest.param(
        "11,30 * * * *",
        "Australia/Lord_Howe",
        "2027-04-03T14:29:00Z",
        "2027-04-03T14:30:00Z 2027-04-03T15:00:00Z 2027-04-03T15:41:00Z",
        id="dst-fold-23",
    ),
    # An overlap that starts at a quarter to.
    pytest.param(
        "*/7 2 * * *",
        "Pacific/Chatham",
        "2027-04-03T13:55:00Z",
        "2027-04-03T14:04:00Z 2027-04-03T14:11:00Z 2027-04-04T13:15:00Z",
        id="dst-fold-24",
    ),
    # 02:30 is missing: the end of the gap.
    pytest.param(
        "30 2 * * *",
        "America/New_York",
        "2027-03-13T12:00:00Z",
        "2027-03-14T07:00:00Z 2027-03-15T06:30:00Z 2027-03-16T06:30:00Z",
        id="dst-gap-01",
    ),
    # Two missing times fire once.
    pytest.param(
        "0,30 2 * * *",
        "America/New_York",
        "2027-03-13T12:00:00Z",
        "2027-03-14T07:00:00Z 2027-03-15T06:00:00Z 2027-03-15T06:30:00Z",
        id="dst-gap-02",
    ),
    # A missing time and a regular one at the same instant.
    pytest.param(
        "0 2,3 * * *",
        "America/New_York",
        "2027-03-13T12:00:00Z",
        "2027-03-14T07:00:00Z 2027-03-15T06:00:00Z 2027-03-15T07:00:00Z",
        id="dst-gap-03",
    ),
    # The midnight after a 23-hour day.
    pytest.param(
        "0 0 * * *",
        "Europe/Prague",
        "2027-03-27T23:30:00Z",
        "2027-03-28T22:00:00Z 2027-03-29T22:00:00Z 2027-03-30T22:00:00Z",
        id="dst-gap-05",
    ),
    # A missing time on a Sunday written 7.
    pytest.param(
        "30 2 * * 7",
        "Europe/Rome",
        "2027-03-27T00:00:00Z",
        "2027-03-28T01:00:00Z 2027-04-04T00:30:00Z 2027-04-11T00:30:00Z",
        id="dst-gap-07",
    ),
    # A missing midnight is not made up for a wildcard.
    pytest.param(
        "0 */2 * * *",
        "Africa/Cairo",
        "2027-04-29T19:00:00Z",
        "2027-04-29T20:00:00Z 2027-04-29T23:00:00Z 2027-04-30T01:00:00Z",
        id="dst-gap-09",
    ),
    # A missing midnight.
    pytest.param(
        "0 0 * * *",
        "Asia/Beirut",
        "2027-03-27T12:00:00Z",
        "2027-03-27T22:00:00Z 2027-03-28T21:00:00Z 2027-03-29T21:00:00Z",
        id="dst-gap-11",
    ),
    # Saturday"s missing 23:30 fires on Sunday.
    pytest.param(
        "30 23 * * 6",
        "America/Nuuk",
        "2027-03-26T00:00:00Z",
        "2027-03-28T01:00:00Z 2027-04-04T00:30:00Z 2027-04-11T00:30:00Z",
        id="dst-gap-12",
    ),
    # 01:00 exists where midnight does not.
    pytest.param(
        "0 1 4 11 *",
        "America/Sao_Paulo",
        "2018-11-04T02:00:00Z",
        "2018-11-04T03:00:00Z 2019-11-04T04:00:00Z 2020-11-04T04:00:00Z",
        id="dst-gap-14",
    ),
    # A two-hour gap, two missing times, one instant.
    pytest.param(
        "30 1,2 * * *",
        "Antarctica/Troll",
        "2027-03-27T12:00:00Z",
        "2027-03-28T01:00:00Z 2027-03-28T23:30:00Z 2027-03-29T00:30:00Z",
        id="dst-gap-17",
    ),
    # A wildcard minute in a missing hour.
    pytest.param(
        "*/15 2 * * *",
        "America/New_York",
        "2027-03-13T12:00:00Z",
        "2027-03-15T06:00:00Z 2027-03-15T06:15:00Z 2027-03-15T06:30:00Z",
        id="dst-gap-18",
    ),
    # A whole missing day.
    pytest.param(
        "0 0 30 * *",
        "Pacific/Apia",
        "2011-12-15T00:00:00Z",
        "2011-12-30T10:00:00Z 2012-01-29T10:00:00Z 2012-03-29T10:00:00Z",
        id="dst-gap-21",
    ),
    # A gap from a quarter to three.
    pytest.param(
        "50 2 * * *",
        "Pacific/Chatham",
        "2027-09-25T00:00:00Z",
        "2027-09-25T14:00:00Z 2027-09-26T13:05:00Z 2027-09-27T13:05:00Z",
        id="dst-gap-22",
    ),
    # Just after such a gap.
    pytest.param(
        "50 3 * * *",
        "Pacific/Chatham",
        "2027-09-25T00:00:00Z",
        "2027-09-25T14:05:00Z 2027-09-26T14:05:00Z 2027-09-27T14:05:00Z",
        id="dst-gap-23",
    ),
    # Casablanca without its yearly change.
    pytest.param(
        "0 9 * * *",
        "Africa/Casablanca",
        "2026-12-01T00:00:00Z",
        "2026-12-01T09:00:00Z 2026-12-02T09:00:00Z 2026-12-03T09:00:00Z",
        id="tz-03",
    ),
    # Asuncion without summer time.
    pytest.param(
        "0 0 * * *",
        "America/Asuncion",
        "2027-03-27T12:00:00Z",
        "2027-03-28T03:00:00Z 2027-03-29T03:00:00Z 2027-03-30T03:00:00Z",
        id="tz-04",
    ),
    # A new name.
    pytest.param(
        "30 3 * * *",
        "Europe/Kyiv",
        "2027-03-27T12:00:00Z",
        "2027-03-28T01:00:00Z 2027-03-29T00:30:00Z 2027-03-30T00:30:00Z",
        id="tz-05",
    ),
    # Its old name.
    pytest.param(
        "30 3 * * *",
        "Europe/Kiev",
        "2027-03-27T12:00:00Z",
        "2027-03-28T01:00:00Z 2027-03-29T00:30:00Z 2027-03-30T00:30:00Z",
        id="tz-06",
    ),
    # The sign of Etc/GMT+5 is turned round.
    pytest.param(
        "0 9 * * *",
        "Etc/GMT+5",
        "2026-12-01T00:00:00Z",
        "2026-12-01T14:00:00Z 2026-12-02T14:00:00Z 2026-12-03T14:00:00Z",
        id="tz-07",
    ),
    # An offset with seconds.
    pytest.param(
        "0 12 * * *",
        "Africa/Monrovia",
        "1971-06-01T00:00:00Z",
        "1971-06-01T12:44:30Z 1971-06-02T12:44:30Z 1971-06-03T12:44:30Z",
        id="tz-10",
    ),
    # Tehran without summer time.
    pytest.param(
        "0 0 * * *",
        "Asia/Tehran",
        "2027-03-20T12:00:00Z",
        "2027-03-20T20:30:00Z 2027-03-21T20:30:00Z 2027-03-22T20:30:00Z",
        id="tz-11",
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


@pytest.mark.parametrize(("expression", "timezone", "policy", "after", "expected"), CHANGES)
def test_around_a_change_the_next_are(expression: str, timezone: str, policy: str, after: str, expected: str) -> None:
    gap = Gap.SKIP if policy == "skip" else Gap.SHIFT
    overlap = Overlap(policy) if policy in ("last", "both") else Overlap.FIRST
    spec = cron(expression, timezone, gap=gap, overlap=overlap)
    instants = [datetime.fromisoformat(text) for text in expected.split()]
    assert list(occurrences(spec, datetime.fromisoformat(after), instants[-1])) == instants


# The same days under each policy: the list of one clock change, in UTC. 01:30 happens twice on 1 November 2026 in
# New York, and 02:30 not at all on 14 March 2027.
EACH_HOUR = ["04:30", "05:30", "06:30", "07:30", "08:30", "09:30"]
POLICIES = [
    pytest.param("30 1 * * *", "2026-11-01", Gap.SHIFT, Overlap.FIRST, ["05:30"], id="first pass"),
    pytest.param("30 1 * * *", "2026-11-01", Gap.SHIFT, Overlap.LAST, ["06:30"], id="last pass"),
    pytest.param("30 1 * * *", "2026-11-01", Gap.SHIFT, Overlap.BOTH, ["05:30", "06:30"], id="both passes"),
    pytest.param("30 1,2 * * *", "2026-11-01", Gap.SHIFT, Overlap.LAST, ["06:30", "07:30"], id="last, and a plain one"),
    pytest.param("30 2 * * *", "2027-03-14", Gap.SHIFT, Overlap.FIRST, ["07:00"], id="after the gap"),
    pytest.param("30 2 * * *", "2027-03-14", Gap.SKIP, Overlap.FIRST, [], id="not in the gap"),
    pytest.param("0,30 2,3 * * *", "2027-03-14", Gap.SKIP, Overlap.FIRST, ["07:00", "07:30"], id="those that exist"),
    pytest.param("30 * * * *", "2026-11-01", Gap.SKIP, Overlap.LAST, EACH_HOUR, id="a wildcard has no policy"),
]


@pytest.mark.parametrize(("expression", "day", "gap", "overlap", "expected"), POLICIES)
def test_a_policy_decides_one_day_in_new_york(
    expression: str, day: str, gap: Gap, overlap: Overlap, expected: list[str]
) -> None:
    spec = cron(expression, "America/New_York", gap=gap, overlap=overlap)
    midnight = datetime.fromisoformat(f"{day}T04:00:00Z")
    found = [f"{instant:%H:%M}" for instant in occurrences(spec, midnight, midnight + timedelta(hours=6))]
    assert found == expected


def test_a_time_that_clocks_always_leave_out_and_a_policy_that_skips_it_never_fire() -> None:
    second_sunday_in_march = cron("30 2 8-14 3 */7", "America/New_York", gap=Gap.SKIP)
    assert next_occurrence(second_sunday_in_march, datetime.fromisoformat("2027-01-01T00:00:00Z")) is None


@pytest.mark.parametrize("block_seconds", [3_599, 86_399])
def test_it_makes_no_difference_where_the_blocks_of_stretches_are_cut(
    block_seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, until = datetime.fromisoformat("2026-10-30T00:00:00Z"), datetime.fromisoformat("2026-11-03T00:00:00Z")
    specs = [
        cron(expression, zone, gap=gap, overlap=overlap)
        for expression in ("0-59/7 0-23 * * *", "30 1 1 11 *", "*/20 * * * *")
        for zone in ("America/New_York", "America/Havana", "UTC")
        for gap, overlap in itertools.product(Gap, Overlap)
    ]
    expected = [list(occurrences(spec, asked, until)) for spec in specs]
    with monkeypatch.context() as patched:
        patched.setattr(offsets, "BLOCK_SECONDS", block_seconds)
        patched.setattr("scheduler.calendar.occurrences.BLOCK_SECONDS", block_seconds)
        offsets.stretches.cache_clear()
        found = [list(occurrences(spec, asked, until)) for spec in specs]
    offsets.stretches.cache_clear()
    assert found == expected
