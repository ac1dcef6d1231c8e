"""A breaker for each tenant's endpoint: when it opens, how long it waits for a probe, and when failing becomes for good.

An endpoint is one origin (scheme, host, port) as one tenant's schedules post to it. closed: all runs go. open: they are
held, without an attempt. half_open: one run probes it; an answer that is no sign of trouble closes it, anything else opens
it again for twice as long. The SQL of the claim and of the record turns it, under the row's own lock.
"""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, kw_only=True, slots=True)
class BreakerPolicy:
    """It opens at `ratio` of failures among at least `volume` attempts in a `window`; the wait doubles up to the longest.

    An endpoint without a single 2xx for `failing_for` has its schedules disabled; its tenant is warned half-way.
    """

    window: timedelta = timedelta(minutes=2)
    volume: int = 10
    ratio: float = 0.5
    first_wait: timedelta = timedelta(seconds=30)
    longest_wait: timedelta = timedelta(minutes=10)
    failing_for: timedelta = timedelta(days=5)
