"""What the calendar may cost: over shared expressions, and for hostile text. `make bench` has its speed."""

import time
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scheduler.calendar import days, grammar
from scheduler.calendar.occurrences import next_occurrence
from scheduler.calendar.spec import at, cron, rate
from scheduler.errors import InvalidExpression

START = datetime(2027, 1, 1, tzinfo=UTC)


def test_ten_thousand_schedules_that_share_an_expression_cost_one_computation(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = grammar.cron_rule.cache_info().misses
    specs = [cron("0 9 17 * 1-5", "Europe/Paris") for _ in range(10_000)]
    assert len(set(specs)) == 1
    searched = []
    search = days.DayRule.search
    monkeypatch.setattr(days.DayRule, "search", lambda rule, day: searched.append(day) or search(rule, day))
    assert len({next_occurrence(spec, START) for spec in specs}) == 1
    assert grammar.cron_rule.cache_info().misses == parsed + 1
    assert len(searched) == 1


def readings_of(text: str) -> tuple[Callable[[], object], ...]:
    """Every way that a tenant's text is read."""
    return (
        lambda: cron(text, "UTC"),
        lambda: cron("* * * * *", text),
        lambda: rate(text, START),
        lambda: at(text, "UTC"),
    )


HOSTILE = st.text(max_size=4096) | st.text(st.sampled_from("0123456789*/-,LW#?@ \tabcdefmnorstu=()"), max_size=4096)


@settings(max_examples=300, deadline=None, database=None)
@given(text=HOSTILE)
@example(text="0 0 " + ",".join(["31"] * 1_360) + " 2 *")
@example(text="0 0 " + ",".join(["31W", "L-30", "30W"] * 300) + " 2 */7")
@example(text="0 0 29W 2 " + ",".join(["mon#5"] * 600))
@example(text="*" * 4096)
@example(text="0-" * 2048)
@example(text="9" * 4096)
@example(text="0" * 4087 + "1 * * * *")
@example(text=" " * 4096)
@example(text="\t" + "0 " * 2047)
@example(text="Europe/" + "x" * 57)
@example(text="\ud800" * 4096)
def test_any_text_is_answered_in_bounds_and_only_with_the_grammars_own_error(text: str) -> None:
    for read in readings_of(text):
        begun = time.process_time()
        answer = _answer(read)
        seconds = time.process_time() - begun
        assert answer.isprintable()
        assert len(answer) < 500
        assert seconds < 0.05


def _answer(read: Callable[[], object]) -> str:
    """What is said to the author of a text; nothing for a text that is taken."""
    try:
        read()
    except InvalidExpression as refusal:
        return str(refusal)
    return ""


@settings(max_examples=100, deadline=None, database=None)
@given(text=HOSTILE)
@example(text="0-99999999/1 * * * *")
@example(text="0-9999999999 * * * *")
@example(text=",".join(["0"] * 2048) + " 0 * * *")
@example(text="0 0 " + ",".join(["31W", "L-30", "30W"] * 300) + " 2 */7")
@example(text="0 0 29W 2 " + ",".join(["mon#5"] * 600))
@example(text="\ud800" * 4096)
def test_no_text_takes_memory_to_speak_of(text: str) -> None:
    for read in readings_of(text):
        tracemalloc.start()
        try:
            _answer(read)
            assert tracemalloc.get_traced_memory()[1] < 5_000_000
        finally:
            tracemalloc.stop()
