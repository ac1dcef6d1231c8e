"""The next instants of a schedule, on the command line: `python -m scheduler.preview --cron '30 2 * * *' --count 3`."""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import NoReturn

from scheduler.calendar.preview import upcoming
from scheduler.calendar.spec import CalendarSpec, Gap, OnExcluded, Overlap, at, cron, rate, without_dates
from scheduler.calendar.zones import validate
from scheduler.errors import InvalidExpression

_MOST = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints one `YYYY-MM-DDTHH:MM:SSZ` a line; for bad input one line on standard error, and exit 2."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    after = _after(asked)
    try:
        spec = _spec(asked, after)
    except InvalidExpression as error:
        parser.error(str(error))
    fired = (occurrence for occurrence in upcoming(spec, after) if not occurrence.excluded)
    lines = [f"{each.scheduled_for:%Y-%m-%dT%H:%M:%SZ}\n" for each in islice(fired, asked.count)]
    # Whoever reads the first lines only, as head does, has closed the pipe by now.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write("".join(lines))
        sys.stdout.flush()


def _spec(asked: argparse.Namespace, after: datetime) -> CalendarSpec:
    return without_dates(_whole(asked, after), asked.exclude, OnExcluded(asked.on_excluded), asked.timezone)


def _whole(asked: argparse.Namespace, after: datetime) -> CalendarSpec:
    if asked.rate is not None:
        # It says nothing about a rate's instants, but a wrong one was meant to say something.
        validate(asked.timezone)
        # Without a start the first is one period after now, which is the same lattice as one that begins now.
        return rate(asked.rate, asked.start or after)
    make, text = (cron, asked.cron) if asked.cron is not None else (at, asked.at)
    return make(text, asked.timezone, gap=Gap(asked.gap), overlap=Overlap(asked.overlap))


def _after(asked: argparse.Namespace) -> datetime:
    """The instant that all output is later than; a start is itself output."""
    after: datetime | None = asked.after
    if asked.start is not None:
        before_start: datetime = asked.start - timedelta(microseconds=1)
        return before_start if after is None else max(after, before_start)
    if after is None:
        # A one-off says its own date. For the others this is the one place that reads the wall clock.
        after = _EPOCH if asked.at is not None else datetime.now(UTC)
    return after


class _OneLineParser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {' '.join(message.split())}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _OneLineParser(prog="preview", description="The next instants of a schedule, in UTC.", allow_abbrev=False)
    timing = parser.add_mutually_exclusive_group(required=True)
    timing.add_argument("--cron", metavar="EXPRESSION", help="five fields: minute hour day-of-month month day-of-week")
    timing.add_argument("--rate", metavar="PERIOD", help="10 seconds, 15 minutes, 1 hour, 7 days, …")
    timing.add_argument("--at", metavar="WALL_TIME", help="once, as in 2026-12-24T18:00:00")
    parser.add_argument("--timezone", default="UTC", metavar="ZONE", help="an IANA name (default: UTC)")
    parser.add_argument(
        "--gap", choices=[gap.value for gap in Gap], default=Gap.SHIFT, help="for a wall time that does not exist"
    )
    parser.add_argument(
        "--overlap",
        choices=[overlap.value for overlap in Overlap],
        default=Overlap.FIRST,
        help="for one that happens twice",
    )
    parser.add_argument(
        "--exclude",
        type=_date,
        action="append",
        default=[],
        metavar="DATE",
        help="not on this local date; may be repeated",
    )
    parser.add_argument(
        "--on-excluded",
        choices=[OnExcluded.SKIP.value, OnExcluded.NEXT_DAY.value],
        default=OnExcluded.SKIP,
        help="what it does instead on an excluded date",
    )
    parser.add_argument("--after", type=_instant, metavar="INSTANT", help="only later ones (default: now)")
    parser.add_argument("--start", type=_instant, metavar="INSTANT", help="none before it; a rate's first")
    parser.add_argument("--count", type=_count, default=10, metavar="N", help=f"how many, 1 to {_MOST} (default: 10)")
    return parser


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a date; write it as 2026-12-24") from None


def _instant(text: str) -> datetime:
    how = f"{text!r} is not an instant; write it with its offset, as in 2027-03-13T12:00:00Z"
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(how) from None
    if instant.tzinfo is None:
        raise argparse.ArgumentTypeError(how)
    if not 1970 <= instant.year <= 9899:
        raise argparse.ArgumentTypeError(f"{text!r} is out of range; write a year from 1970 to 9899")
    return instant.astimezone(UTC)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 1 <= int(text) <= _MOST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a count; write 1 to {_MOST}")
    return int(text)


if __name__ == "__main__":
    main()
