"""How much of a calendar one transaction takes on: after an outage, or for very many schedules, it is planned in pieces.

A transaction that makes all at once would be cut off by the server's limits, and so would be each of its repetitions.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from scheduler.calendar.occurrences import occurrences
from scheduler.materialising import Span
from scheduler.store.connection import Transaction

# The occurrences of a calendar that are looked at in one transaction.
MOST_OCCURRENCES = 50_000
# The runs that one transaction makes for a calendar, where an occurrence has no more by itself.
_RUNS = 100_000
# A calendar in step has no more than these between two ticks, and is looked at no closer.
_FEW = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """The first part of what a calendar owes. `later`: due occurrences behind it, as far as a misfire policy counts them."""

    span: Span
    later: tuple[datetime, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Load:
    """What a calendar's schedules make of late occurrences: how many they are; `cap` and `grace` of the most generous."""

    schedules: int
    cap: int
    grace: timedelta


def in_pieces(transaction: Transaction, spans: Sequence[Span], now: datetime) -> tuple[list[Span], list[Piece]]:
    """The spans that are planned as they are, and the first pieces of those that are too much at once."""
    long = [one.calendar_id for one in spans if len(one.instants) > _FEW]
    loads = _loads(transaction, long) if long else {}
    whole, pieces = list[Span](), list[Piece]()
    for one in spans:
        load = loads.get(one.calendar_id)
        piece = _first_piece(one, load, now) if load else None
        if piece is None:
            whole.append(one)
        else:
            pieces.append(piece)
    return whole, pieces


def _loads(transaction: Transaction, calendar_ids: list[int]) -> dict[int, _Load]:
    return {
        row["calendar_id"]: _Load(
            schedules=row["schedules"], cap=row["cap"], grace=timedelta(seconds=row["grace_seconds"])
        )
        for row in transaction.run("planning.weigh", ids=calendar_ids)
    }


def _first_piece(span: Span, load: _Load, now: datetime) -> Piece | None:
    """None for a span that is planned as a whole, with nothing due behind it."""
    behind = tuple(islice(occurrences(span.calendar, span.end, now), load.cap))
    count = _count(span, load, now, len(behind))
    if count == len(span.instants):
        return Piece(span=span, later=behind) if behind else None
    due = bisect_right(span.instants, now)
    later = (*span.instants[count:due], *behind)
    return Piece(span=span.head(count), later=later[: load.cap])


def _count(span: Span, load: _Load, now: datetime, behind: int) -> int:
    """How many occurrences the first piece has: all, or those that nobody runs any more, or as many as make few enough runs."""
    newest = bisect_right(span.instants, now) - max(load.cap - behind, 0)
    skipped = max(min(newest, bisect_left(span.instants, now - load.grace)), 0)
    if (len(span.instants) - skipped) * load.schedules <= _RUNS:
        return len(span.instants)
    return skipped or max(_RUNS // load.schedules, 1)
