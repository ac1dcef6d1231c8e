"""What becomes of a run, by the receiver's answer; and the attempt log, which stores whatever came."""

import codecs
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler.webhook.attempt_log import storable, storable_headers
from scheduler.webhook.outcome import (
    Answer,
    Failure,
    Outcome,
    Stage,
    Timings,
    classify,
    parse_retry_after,
    retry_after,
    stage_of,
)

NOW = datetime(2027, 1, 1, tzinfo=UTC)
TOOK = Timings(total=1)


def answer(status: int, *headers: tuple[str, str]) -> Answer:
    return Answer(status=status, headers=headers, body_excerpt=b"", timings=TOOK)


OUTCOMES = [
    (200, None, Outcome.SUCCEEDED),
    (202, None, Outcome.SUCCEEDED),
    (204, None, Outcome.SUCCEEDED),
    (299, None, Outcome.SUCCEEDED),
    (101, Stage.STATUS, Outcome.RETRY),
    (300, Stage.REDIRECT, Outcome.RETRY),
    (301, Stage.REDIRECT, Outcome.RETRY),
    (304, Stage.REDIRECT, Outcome.RETRY),
    (308, Stage.REDIRECT, Outcome.RETRY),
    (400, Stage.STATUS, Outcome.RETRY),
    (401, Stage.STATUS, Outcome.RETRY),
    (404, Stage.STATUS, Outcome.RETRY),
    (408, Stage.STATUS, Outcome.RETRY),
    (410, Stage.STATUS, Outcome.GONE),
    (425, Stage.STATUS, Outcome.RETRY),
    (429, Stage.STATUS, Outcome.RETRY),
    (500, Stage.STATUS, Outcome.RETRY),
    (503, Stage.STATUS, Outcome.RETRY),
    (599, Stage.STATUS, Outcome.RETRY),
    (999, Stage.STATUS, Outcome.RETRY),
]


@pytest.mark.parametrize(("status", "stage", "outcome"), OUTCOMES)
def test_each_status_has_its_stage_and_outcome(status: int, stage: Stage | None, outcome: Outcome) -> None:
    assert (stage_of(answer(status)), classify(answer(status))) == (stage, outcome)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (400, Outcome.REJECTED),
        (404, Outcome.REJECTED),
        (422, Outcome.REJECTED),
        (408, Outcome.RETRY),
        (425, Outcome.RETRY),
        (429, Outcome.RETRY),
        (410, Outcome.GONE),
        (302, Outcome.RETRY),
        (500, Outcome.RETRY),
        (201, Outcome.SUCCEEDED),
    ],
)
def test_a_schedule_may_take_an_ordinary_client_error_for_final(status: int, outcome: Outcome) -> None:
    assert classify(answer(status), retry_client_errors=False) is outcome


@pytest.mark.parametrize("stage", [stage for stage in Stage if stage not in (Stage.STATUS, Stage.REDIRECT)])
def test_every_failure_on_the_way_is_tried_again(stage: Stage) -> None:
    failure = Failure(stage=stage, detail="", timings=TOOK)
    assert (stage_of(failure), classify(failure)) == (stage, Outcome.RETRY)


@pytest.mark.parametrize(
    ("status", "value", "outcome"),
    [
        (500, "true", Outcome.REJECTED),
        (302, " TRUE ", Outcome.REJECTED),
        (429, "1", Outcome.REJECTED),
        (500, "false", Outcome.RETRY),
        (500, "", Outcome.RETRY),
        (410, "true", Outcome.GONE),
        (200, "true", Outcome.SUCCEEDED),
    ],
)
def test_a_receiver_can_say_that_no_retry_will_help(status: int, value: str, outcome: Outcome) -> None:
    assert classify(answer(status, ("X-NO-RETRY", value))) is outcome


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("120", 120),
        (" 120 ", 120),
        ("0" * 40 + "12", 12),
        ("999999999", 999999999),
        ("9" * 500, 9999999999),
        ("Fri, 01 Jan 2027 00:02:00 GMT", 120),
        ("Friday, 01-Jan-27 00:02:00 GMT", 120),
        ("Fri Jan  1 00:02:00 2027", 120),
        ("Fri, 01 Jan 2027 00:02:00", 120),
        ("-5", None),
        ("1.5", None),
        ("١٢", None),
        ("abc", None),
        ("", None),
        ("Thu, 31 Dec 2026 23:59:59 GMT", None),
        ("Fri, 32 Jan 2027 00:02:00 GMT", None),
        ("Fri, 01 Jan 2027 00:02:00 +9999999999", None),
    ],
)
def test_retry_after_is_seconds_or_an_http_date(value: str, seconds: int | None) -> None:
    expected = None if seconds is None else timedelta(seconds=seconds)
    assert parse_retry_after(value, now=NOW) == expected


@given(value=st.text(alphabet=st.characters(max_codepoint=255)))
def test_no_retry_after_raises(value: str) -> None:
    asked = parse_retry_after(value, now=NOW)
    assert asked is None or asked >= timedelta(0)


def test_retry_after_counts_on_failed_answers_only() -> None:
    header = ("Retry-After", "7")
    assert retry_after(answer(503, header), now=NOW) == timedelta(seconds=7)
    assert retry_after(answer(200, header), now=NOW) is None
    assert retry_after(answer(503), now=NOW) is None
    assert retry_after(Failure(stage=Stage.DNS, detail="", timings=TOOK), now=NOW) is None


def test_bytes_that_no_text_column_takes_are_replaced() -> None:
    """wh-05: one such byte made an attempt impossible to record, and the run was sent for ever."""
    assert storable(b"ok\x00\xff\xfe") == "ok\ufffd\ufffd\ufffd"


@given(data=st.binary(max_size=3000))
def test_any_bytes_become_a_short_text_without_nul(data: bytes) -> None:
    text = storable(data)
    assert "\0" not in text
    assert len(text) <= 1024
    text.encode()


def test_header_values_that_are_credentials_are_not_kept() -> None:
    headers = (
        ("Set-Cookie", "session=1"),
        ("SERVER", "x\x00\xe9"),
        ("www-authenticate", "Basic"),
        ("X-Signature", "v1,"),
    )
    assert storable_headers(headers) == (
        ("Set-Cookie", "[redacted]"),
        ("SERVER", "x\ufffd\ufffd"),
        ("www-authenticate", "[redacted]"),
        ("X-Signature", "[redacted]"),
    )


@given(headers=st.lists(st.tuples(st.text(max_size=400), st.text(max_size=400)), max_size=10))
def test_any_headers_become_a_kibibyte_of_storable_text(headers: list[tuple[str, str]]) -> None:
    kept = storable_headers(headers)
    texts = [text for pair in kept for text in pair]
    assert sum(len(codecs.encode(text, "utf-8")) for text in texts) <= 1024
    assert not any("\0" in text for text in texts)
