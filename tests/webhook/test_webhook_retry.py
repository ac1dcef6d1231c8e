"""Delays: bounded, spread, the same for every worker, and with an end."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler.errors import InvalidInput
from scheduler.webhook.outcome import parse_retry_after
from scheduler.webhook.retry import DEFAULT, Exponential, Ladder, RetryPolicy, next_delay
from scheduler.webhook.retry_document import parse_retry, retry_document

RUN = UUID(int=7)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
FLAT = RetryPolicy(backoff=Ladder(delays=(60 * SECOND,) * 50), max_attempts=51, max_age=7 * DAY)


def delays(policy: RetryPolicy, seed: UUID = RUN) -> list[timedelta]:
    """Every delay of a run that fails at once each time, until the policy is exhausted."""
    found, age = [], timedelta(0)
    for failures in range(1, 200):
        delay = next_delay(policy, failures=failures, age=age, seed=seed)
        if delay is None:
            return found
        found.append(delay)
        age += delay
    raise AssertionError("never exhausted")


@given(seed=st.uuids(), failures=st.integers(1, 11))
def test_full_jitter_stays_between_a_second_and_the_ceiling(seed: UUID, failures: int) -> None:
    delay = next_delay(DEFAULT, failures=failures, age=timedelta(0), seed=seed)
    assert delay is not None
    assert SECOND <= delay <= min(15 * SECOND * 3 ** (failures - 1), 3 * HOUR)


def test_full_jitter_is_spread_evenly() -> None:
    drawn = [next_delay(DEFAULT, failures=9, age=timedelta(0), seed=uuid4()) for _ in range(2000)]
    quarters = [sum(1 for each in drawn if each and n * HOUR * 0.75 <= each < (n + 1) * HOUR * 0.75) for n in range(4)]
    assert all(400 < each < 600 for each in quarters)


def test_every_worker_computes_the_same_delay_and_every_failure_another() -> None:
    ceiling = RetryPolicy(backoff=Exponential(base=HOUR, factor=1, cap=HOUR), max_attempts=50, max_age=7 * DAY)
    assert delays(ceiling) == delays(ceiling)
    assert all(one != next_one for one, next_one in pairwise(delays(ceiling)))
    assert delays(ceiling, UUID(int=8)) != delays(ceiling)


def test_the_default_ends_with_its_attempts() -> None:
    assert len(delays(DEFAULT)) == DEFAULT.max_attempts - 1
    assert sum(delays(DEFAULT), timedelta(0)) < DEFAULT.max_age


def test_a_ladder_is_followed_exactly_and_ends_after_its_last_rung() -> None:
    rungs = (5 * SECOND, 300 * SECOND, 2 * HOUR)
    assert delays(RetryPolicy(backoff=Ladder(delays=rungs), max_attempts=4, max_age=DAY)) == list(rungs)


def test_the_last_attempt_is_made_at_the_maximum_age_and_none_after_it() -> None:
    policy = RetryPolicy(backoff=Ladder(delays=(HOUR,) * 9), max_attempts=10, max_age=150 * 60 * SECOND)
    assert delays(policy) == [HOUR, HOUR, HOUR / 2]
    assert next_delay(policy, failures=1, age=policy.max_age, seed=RUN) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("999999999", 21600), ("-5", 60), ("Fri, 31 Dec 9999 23:59:59 GMT", 21600), ("abc", 60), ("0", 60), ("90", 90)],
)
def test_retry_after_lengthens_the_delay_up_to_six_hours_and_junk_changes_nothing(value: str, seconds: int) -> None:
    """ht-08."""
    asked = parse_retry_after(value, now=datetime(2027, 1, 1, tzinfo=UTC))
    assert next_delay(FLAT, failures=1, age=timedelta(0), seed=RUN, retry_after=asked) == timedelta(seconds=seconds)


def test_retry_after_does_not_reach_past_the_maximum_age() -> None:
    policy = RetryPolicy(backoff=Ladder(delays=(60 * SECOND,)), max_attempts=2, max_age=HOUR)
    assert next_delay(policy, failures=1, age=HOUR / 2, seed=RUN, retry_after=DAY) == HOUR / 2


def test_failures_are_counted_from_one() -> None:
    with pytest.raises(ValueError, match="from 1"):
        next_delay(DEFAULT, failures=0, age=timedelta(0), seed=RUN)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Exponential(base=0 * SECOND, factor=2, cap=HOUR),
        lambda: Exponential(base=HOUR, factor=2, cap=SECOND),
        lambda: Exponential(base=HOUR, factor=2, cap=2 * DAY),
        lambda: Exponential(base=HOUR, factor=0.5, cap=DAY),
        lambda: Exponential(base=HOUR, factor=float("nan"), cap=DAY),
        lambda: Ladder(delays=()),
        lambda: Ladder(delays=(SECOND / 2,)),
        lambda: Ladder(delays=(SECOND,) * 100),
        lambda: RetryPolicy(backoff=DEFAULT.backoff, max_attempts=0, max_age=DAY),
        lambda: RetryPolicy(backoff=DEFAULT.backoff, max_attempts=2, max_age=8 * DAY),
        lambda: RetryPolicy(backoff=FLAT.backoff, max_attempts=50, max_age=DAY),
    ],
)
def test_a_policy_out_of_bounds_can_not_be_made(make: object) -> None:
    with pytest.raises(ValueError, match="a retry policy needs"):
        make()  # type: ignore[operator]


POLICIES = st.builds(
    RetryPolicy,
    backoff=st.builds(
        lambda base, factor, more: Exponential(base=base * SECOND, factor=factor, cap=(base + more) * SECOND),
        st.integers(1, 3600),
        st.floats(1, 10),
        st.integers(0, 3600),
    ),
    max_attempts=st.integers(1, 100),
    max_age=st.integers(1, 604800).map(lambda seconds: timedelta(seconds=seconds)),
)
LADDERS = st.lists(st.integers(1, 86400), min_size=1, max_size=99).map(
    lambda rungs: RetryPolicy(
        backoff=Ladder(delays=tuple(timedelta(seconds=rung) for rung in rungs)),
        max_attempts=len(rungs) + 1,
        max_age=DAY,
    )
)


@given(policy=st.one_of(POLICIES, LADDERS))
def test_a_policy_survives_its_document_and_ends(policy: RetryPolicy) -> None:
    assert parse_retry(retry_document(policy)) == policy
    assert len(delays(policy)) < policy.max_attempts


def test_what_a_document_leaves_out_is_the_default() -> None:
    assert parse_retry(None) == parse_retry({}) == parse_retry({"backoff": "exponential"}) == DEFAULT
    ladder = parse_retry({"backoff": "ladder", "delays_seconds": [5]})
    assert (ladder.max_attempts, ladder.max_age) == (2, DEFAULT.max_age)
    assert parse_retry({"base_seconds": 86400}).backoff == Exponential(base=DAY, factor=3.0, cap=DAY)


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ([], "/retry"),
        ({"backoff": "linear"}, "/retry/backoff"),
        ({"backoff": None}, "/retry/backoff"),
        ({"backoff": []}, "/retry/backoff"),
        ({"max_attempts": 0}, "/retry/max_attempts"),
        ({"max_attempts": 101}, "/retry/max_attempts"),
        ({"max_attempts": True}, "/retry/max_attempts"),
        ({"max_attempts": 1.0}, "/retry/max_attempts"),
        ({"max_age_seconds": 604801}, "/retry/max_age_seconds"),
        ({"base_seconds": "5"}, "/retry/base_seconds"),
        ({"base_seconds": 60, "cap_seconds": 5}, "/retry/cap_seconds"),
        ({"factor": 11}, "/retry/factor"),
        ({"factor": float("nan")}, "/retry/factor"),
        ({"delays_seconds": [5]}, "/retry/delays_seconds"),
        ({"a/b~": 1}, "/retry/a~1b~0"),
        ({"\ud800": 1}, "/retry/?"),
        ({"backoff": "ladder"}, "/retry/delays_seconds"),
        ({"backoff": "ladder", "delays_seconds": []}, "/retry/delays_seconds"),
        ({"backoff": "ladder", "delays_seconds": [5, 0]}, "/retry/delays_seconds/1"),
        ({"backoff": "ladder", "delays_seconds": [5], "factor": 2}, "/retry/factor"),
    ],
)
def test_a_document_that_is_no_policy_is_refused_at_its_field(document: object, pointer: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_retry(document)
    assert [problem.pointer for problem in caught.value.problems] == [pointer]
