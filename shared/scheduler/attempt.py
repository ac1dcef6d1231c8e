"""One attempt: a leased run is POSTed once, and what came of it decides what becomes of the run."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from scheduler.aws.keys import Keys, KeyUnavailable
from scheduler.errors import InvalidInput
from scheduler.http.client import Client
from scheduler.leases import Lease
from scheduler.recording import Logged, Settlement
from scheduler.runs import Reason, State
from scheduler.webhook.outcome import Answer, Failure, Outcome, classify, retry_after
from scheduler.webhook.request import Delivery, OutboundRequest, build_request
from scheduler.webhook.retry import next_delay
from scheduler.webhook.signature import SigningSecret

# A wait stays in the queue only while it is short and its message young; every other one is the planner's.
_LONGEST_QUEUE_WAIT = timedelta(minutes=2)
_MOST_RECEIVES = 3
_KEY_TROUBLE_WAIT = timedelta(seconds=30)


@dataclass(frozen=True, kw_only=True, slots=True)
class Anchor:
    """The database's time at one point of this process's monotonic clock, and from there on; never ahead of it."""

    time: datetime
    monotonic: float

    def now(self) -> datetime:
        """The database's time, by this process's count of seconds since the anchor."""
        return self.time + timedelta(seconds=time.monotonic() - self.monotonic)


def longest_queue_wait(receives: int) -> timedelta | None:
    """How long a message that was received so often may wait in the queue; None: not at all, its wait is the planner's.

    A message in back-off counts as in flight, and can't be cancelled.
    """
    return _LONGEST_QUEUE_WAIT if receives < _MOST_RECEIVES else None


def _waits_in_queue(wait: timedelta, receives: int) -> bool:
    longest = longest_queue_wait(receives)
    return longest is not None and wait <= longest


def attempt(
    lease: Lease, *, client: Client, keys: Keys, anchor: Anchor, deadline: Callable[[], float], receives: int
) -> Settlement:
    """POSTs the run, not before its time, and returns its settlement. Never raises for what a receiver or the keys do.

    `deadline` is the seconds that a POST may take that begins now: asked when it is signed, since keys can be slow. `receives`
    is how often its message was received, this time included.
    """
    time.sleep(max(0.0, (lease.next_attempt_at - anchor.now()).total_seconds()))
    started_at = anchor.now()
    try:
        request = _request(lease, keys, started_at)
    except KeyUnavailable:
        return _untried(lease, started_at, receives)
    seconds = deadline()
    if seconds <= 0:
        return _untried(lease, started_at, receives)
    result = client.post(request, deadline_seconds=seconds)
    return settle(lease, result, started_at=started_at, now=anchor.now(), receives=receives)


def settle(lease: Lease, result: Answer | Failure, *, started_at: datetime, now: datetime, receives: int) -> Settlement:
    """What becomes of a leased run after this result: the one place that decides between an end and another attempt."""
    outcome = classify(result, retry_client_errors=lease.retry_client_errors)
    match outcome:
        case Outcome.SUCCEEDED:
            return _end(lease, result, started_at, State.SUCCEEDED, None)
        case Outcome.REJECTED:
            return _end(lease, result, started_at, State.FAILED, Reason.REJECTED)
        case Outcome.GONE:
            return _end(lease, result, started_at, State.FAILED, Reason.REJECTED, gone=True)
        case Outcome.RETRY:
            return _retry(lease, result, started_at, now, receives)
        case _:
            assert_never(outcome)


def _retry(lease: Lease, result: Answer | Failure, started_at: datetime, now: datetime, receives: int) -> Settlement:
    wait = next_delay(
        lease.retry,
        failures=lease.failures + 1,
        age=now - lease.counts_from,
        seed=lease.run_id,
        retry_after=retry_after(result, now=now),
    )
    if wait is None:
        return _end(lease, result, started_at, State.FAILED, Reason.EXHAUSTED)
    return Settlement(
        lease=lease,
        state=State.QUEUED if _waits_in_queue(wait, receives) else State.PLANNED,
        next_attempt_at=now + wait,
        started_at=started_at,
        logged=Logged.RETRYING,
        result=result,
    )


def _end(
    lease: Lease,
    result: Answer | Failure,
    started_at: datetime,
    state: State,
    reason: Reason | None,
    *,
    gone: bool = False,
) -> Settlement:
    return Settlement(
        lease=lease,
        state=state,
        reason=reason,
        gone=gone,
        next_attempt_at=lease.next_attempt_at,
        started_at=started_at,
        logged=Logged.SUCCEEDED if state is State.SUCCEEDED else Logged.FAILED,
        result=result,
    )


def _untried(lease: Lease, started_at: datetime, receives: int) -> Settlement:
    """Nothing was sent, so nothing counts: not as an attempt of the policy, and not as a claim without an outcome.

    It does not go on for ever all the same: the policy's age ends it.
    """
    if started_at - lease.counts_from >= lease.retry.max_age:
        return Settlement(
            lease=lease,
            state=State.FAILED,
            reason=Reason.EXPIRED,
            next_attempt_at=lease.next_attempt_at,
            started_at=started_at,
            logged=None,
            result=None,
        )
    return Settlement(
        lease=lease,
        state=State.QUEUED if _waits_in_queue(_KEY_TROUBLE_WAIT, receives) else State.PLANNED,
        next_attempt_at=started_at + _KEY_TROUBLE_WAIT,
        started_at=started_at,
        logged=None,
        result=None,
    )


def _request(lease: Lease, keys: Keys, now: datetime) -> OutboundRequest:
    delivery = Delivery(
        schedule_id=lease.schedule_id,
        run_id=lease.run_id,
        scheduled_for=lease.scheduled_for,
        attempt=lease.attempt,
        url=lease.url,
        headers=lease.headers,
        body=lease.body,
    )
    return build_request(delivery, secrets=_secrets(lease, keys), now=now)


def _secrets(lease: Lease, keys: Keys) -> list[SigningSecret]:
    if not lease.secrets:
        raise KeyUnavailable("its tenant has no signing secret")
    try:
        return [SigningSecret.parse(keys.decrypt(lease.tenant_id, secret)) for secret in lease.secrets]
    except InvalidInput as error:
        raise KeyUnavailable("what was stored is no signing secret") from error
