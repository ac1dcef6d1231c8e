"""`python -m scheduler.preview` and the function behind it: the same instants, and bad input in one line with exit 2."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from scheduler import preview as command
from scheduler.calendar.preview import preview
from scheduler.calendar.spec import Gap, Overlap, at, cron, rate

NEW_YORK = "America/New_York"

PRINTED = [
    (
        ["--cron", "30 2 * * *", "--timezone", NEW_YORK, "--after", "2027-03-13T12:00:00Z", "--count", "3"],
        ["2027-03-14T07:00:00Z", "2027-03-15T06:30:00Z", "2027-03-16T06:30:00Z"],
    ),
    (
        ["--cron", "30 2 * * *", "--timezone", NEW_YORK, "--after", "2027-03-13T12:00:00Z", "--gap=skip", "--count=1"],
        ["2027-03-15T06:30:00Z"],
    ),
    (
        [
            "--cron",
            "30 1 1 11 *",
            "--timezone",
            NEW_YORK,
            "--start=2026-11-01T05:30:00Z",
            "--overlap=both",
            "--count=2",
        ],
        ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"],
    ),
    (
        ["--rate", "15 minutes", "--start", "2027-01-01T00:00:05Z", "--count", "3"],
        ["2027-01-01T00:00:05Z", "2027-01-01T00:15:05Z", "2027-01-01T00:30:05Z"],
    ),
    (
        ["--rate", "1 day", "--start", "2027-01-01T00:00:00Z", "--after", "2027-01-03T00:00:00+00:00", "--count", "1"],
        ["2027-01-04T00:00:00Z"],
    ),
    (["--rate", "1 day", "--after", "2027-01-03T00:00:00Z", "--count", "1"], ["2027-01-04T00:00:00Z"]),
    (["--at", "2026-12-24T18:00:00", "--timezone", "Europe/Berlin"], ["2026-12-24T17:00:00Z"]),
    (
        ["--cron", "0 9 * * *", "--after", "2026-12-24T00:00:00Z", "--count=2", "--exclude=2026-12-25"],
        ["2026-12-24T09:00:00Z", "2026-12-26T09:00:00Z"],
    ),
    (
        ["--at", "2026-12-24T18:00:00", "--exclude=2026-12-24", "--exclude=2026-12-25", "--on-excluded=next_day"],
        ["2026-12-26T18:00:00Z"],
    ),
    (["--at", "2026-12-24T18:00:00", "--after", "2026-12-24T18:00:00Z"], []),
]


@pytest.mark.parametrize(("arguments", "lines"), PRINTED)
def test_it_prints_one_instant_a_line(
    arguments: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command.main(arguments)
    assert capsys.readouterr().out.splitlines() == lines


REFUSED = [
    (["--cron", "60 * * * *"], "minute at position 0: '60' is out of range"),
    (["--cron", "0 0 * * *\n"], "cron at position 9"),
    (
        ["--cron", "0 0 * * *", "--timezone", "europe/paris"],
        "timezone: 'europe/paris' is not a time zone here; write Eur",
    ),
    (["--rate", "5m"], "rate: '5m' is not a rate"),
    (["--rate", "1 day", "--timezone", "Nowhere"], "timezone: 'Nowhere' is not a time zone here"),
    (["--rate", "1 day", "--exclude=2027-01-01", "--on-excluded=next_day"], "on_excluded: a rate has no wall time"),
    (["--at", "2026-12-24"], "at: '2026-12-24' is not a wall time"),
    (["--cron", "@daily", "--rate", "1 day"], "not allowed with"),
    ([], "one of the arguments --cron --rate --at is required"),
    (["--cron"], "expected one argument"),
    (["--cron", "@daily", "--gap", "later"], "choose from 'shift', 'skip'"),
    (["--cron", "@daily", "--after", "2027-01-01T00:00:00"], "with its offset"),
    (["--cron", "@daily", "--after", "yesterday"], "is not an instant"),
    (["--cron", "@daily", "--start", "0001-01-01T00:00:00Z"], "from 1970 to 9899"),
    (["--cron", "@daily", "--count", "0"], "write 1 to 10000"),
    (["--cron", "@daily", "--count", "9" * 5000], "write 1 to 10000"),
    (["--cron", "@daily", "--co\nunt", "3"], "unrecognized arguments"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_bad_input_is_one_line_on_standard_error_and_exit_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        command.main(arguments)
    printed = capsys.readouterr()
    assert (exit_.value.code, printed.out) == (2, "")
    assert message in printed.err
    assert printed.err.endswith("\n")
    assert printed.err.count("\n") == 1


def test_it_runs_as_a_module_and_starts_from_now() -> None:
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    before = datetime.now(UTC)
    ran = subprocess.run(
        [sys.executable, "-m", "scheduler.preview", "--cron", "* * * * *", "--count", "1"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    printed = datetime.fromisoformat(ran.stdout.strip())
    assert before < printed <= datetime.now(UTC) + timedelta(minutes=1)


def test_a_reader_that_wants_the_first_line_alone_gets_it_in_peace() -> None:
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command_line = [sys.executable, "-m", "scheduler.preview", "--cron", "* * * * *", "--count", "10000"]
    with subprocess.Popen(
        command_line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline()
        running.stdout.close()
        assert running.stderr is not None
        assert running.stderr.read() == ""
    assert running.returncode == 0


def _flags(text: str, **policy: Gap | Overlap) -> list[tuple[str, bool, bool]]:
    spec = cron(text, NEW_YORK, **policy)  # type: ignore[arg-type]
    days = datetime(2026, 10, 31, 12, tzinfo=UTC), datetime(2027, 3, 13, 12, tzinfo=UTC)
    return [
        (f"{each.scheduled_for:%dT%H:%M} {each.local:%dT%H:%M%z}", each.dst_shifted, each.dst_repeated)
        for day in days
        for each in preview(spec, day, 2)
    ]


def test_a_preview_says_what_the_clocks_do_to_each_occurrence() -> None:
    assert _flags("30 1 * * *") == [
        ("01T05:30 01T01:30-0400", False, True),
        ("02T06:30 02T01:30-0500", False, False),
        ("14T06:30 14T01:30-0500", False, False),
        ("15T05:30 15T01:30-0400", False, False),
    ]
    assert _flags("30 2 * * *")[2:] == [
        ("14T07:00 14T03:00-0400", True, False),
        ("15T06:30 15T02:30-0400", False, False),
    ]


def test_a_time_of_its_own_right_after_the_gap_is_not_shifted() -> None:
    assert _flags("0 2,3 * * *")[2] == ("14T07:00 14T03:00-0400", False, False)


def test_rates_and_one_offs_have_previews_too() -> None:
    day = datetime(2027, 3, 14, tzinfo=UTC)
    shifted = preview(at("2027-03-14T02:30:00", NEW_YORK), day, 5)
    assert [(each.local.hour, each.dst_shifted) for each in shifted] == [(3, True)]
    assert [each.dst_shifted for each in preview(rate("1 hour", day), day, 2)] == [False, False]
