"""The next occurrence in a zone against croniter's own in UTC: `python -m benchmarks.next_occurrence`."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter

from croniter import croniter
from scheduler.calendar.occurrences import next_occurrence
from scheduler.calendar.spec import cron

EXPRESSIONS = ("* * * * *", "*/5 * * * *", "30 2 * * *", "0 9 * * 1-5", "0 0 29 2 *")
ZONE = "America/New_York"
START = datetime(2027, 1, 1, tzinfo=UTC)
_ROUNDS = 7
# Of leap days these are 2,800 years, of which croniter knows fewer than 8,000.
_STEPS = 100
_LIMIT = 1.5


def main() -> int:
    """Prints one line an expression; 1 where a ratio misses its limit."""
    ratios = [_measure(expression) for expression in EXPRESSIONS]
    return int(max(ratios) > _LIMIT)


def _measure(expression: str) -> float:
    spec, walker, latest = cron(expression, ZONE), croniter(expression, START), START

    def ours() -> None:
        nonlocal latest
        # A walk never asks the same again, so that no memory of answers helps.
        latest = next_occurrence(spec, latest) or START

    def theirs() -> None:
        walker.get_next(datetime)

    mine, their = _best(ours), _best(theirs)
    print(  # noqa: T201
        f"next occurrence: {expression!r} in {ZONE}: {mine * 1e6:.1f} µs, croniter in UTC {their * 1e6:.1f} µs, "
        f"ratio={mine / their:.2f} (at most {_LIMIT})"
    )
    return mine / their


def _best(step: Callable[[], object]) -> float:
    """Seconds a call in the best of some rounds."""
    times = []
    for _ in range(_ROUNDS):
        begun = perf_counter()
        for _ in range(_STEPS):
            step()
        times.append((perf_counter() - begun) / _STEPS)
    return min(times)


if __name__ == "__main__":
    sys.exit(main())
