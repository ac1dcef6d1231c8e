"""Dispatch and sweep: planned runs become messages, and what was lost on the way is sent again."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import batched
from uuid import UUID

from scheduler.aws.queue import MAX_DELAY_SECONDS, Message, Queue
from scheduler.look_ahead import LOOK_AHEAD
from scheduler.shares import TENANT_CONCURRENCY, TENANT_QUEUED
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Row

# Runs read at a time, and of them sent and marked at a time.
_PAGE = 10_000
_CALL = 1_000
_START = (datetime(1970, 1, 1, tzinfo=UTC), UUID(int=0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """How many messages SQS took, and how many it did not: those stay as they are for the next tick."""

    taken: int
    refused: int

    def __add__(self, other: "Sent") -> "Sent":
        return Sent(taken=self.taken + other.taken, refused=self.refused + other.refused)


_NOTHING = Sent(taken=0, refused=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Dispatcher:
    """Sends planned runs, of each tenant only so many that its backlog stands in nobody's way.

    No more than `tenant_queued` of a tenant's runs are in the queue, and none is added while `tenant_concurrency` of its
    deliveries are under way.
    """

    database: Database
    queue: Queue
    clock: Clock
    tenant_queued: int = TENANT_QUEUED
    tenant_concurrency: int = TENANT_CONCURRENCY

    def dispatch(self, *, more_time: Callable[[], bool], schedule_id: UUID | None = None) -> Sent:
        """Sends planned runs due within the look-ahead, or those of one schedule, and marks them queued.

        The row is committed first, then the message is sent, then the row marked: a crash in between sends twice, never not
        at all. No lock is held while sending, since a message can arrive before its mark and must find its run free.
        """
        total, after = _NOTHING, _START
        while more_time():
            with self.database.transaction() as transaction:
                now = self.clock(transaction)
                rows = transaction.run(
                    "dispatch.find_planned",
                    now=now,
                    horizon=now + LOOK_AHEAD,
                    after_at=after[0],
                    after_id=after[1],
                    schedule_id=schedule_id,
                    tenant_queued=self.tenant_queued,
                    tenant_concurrency=self.tenant_concurrency,
                    most=_PAGE,
                )
            for call in batched(rows, _CALL, strict=False):
                if more_time():
                    total += _send(self.database, self.queue, call, now, "dispatch.mark_queued", {})
            if len(rows) < _PAGE:
                break
            after = rows[-1]["next_attempt_at"], rows[-1]["id"]
        return total

    def refill(self, *, more_time: Callable[[], bool], pause: Callable[[], None]) -> Sent:
        """Goes on sending, with a pause before each look, while tenants' limits hold back runs that are due."""
        total = _NOTHING
        while more_time() and self._held_back():
            pause()
            total += self.dispatch(more_time=more_time)
        return total

    def _held_back(self) -> bool:
        with self.database.transaction() as transaction:
            now = self.clock(transaction)
            rows = transaction.run("dispatch.held_back", now=now, horizon=now + LOOK_AHEAD)
        return bool(rows[0]["held_back"])


def send_next(database: Database, queue: Queue, clock: Clock, schedule_ids: Collection[UUID]) -> Sent:
    """Sends, of each schedule, the oldest run that waits for an earlier one to end."""
    with database.transaction() as transaction:
        now = clock(transaction)
        rows = transaction.run("dispatch.find_next", schedule_ids=list(schedule_ids))
    return _send(database, queue, rows, now, "dispatch.mark_queued", {}) if rows else _NOTHING


def sweep(database: Database, queue: Queue, clock: Clock, *, more_time: Callable[[], bool]) -> Sent:
    """Sends again whatever should have been delivered by now and was not."""
    total = _NOTHING
    while more_time():
        with database.transaction() as transaction:
            now = clock(transaction)
            rows = transaction.run("dispatch.find_lost", now=now, most=_CALL)
        if not rows:
            break
        sent = _send(database, queue, rows, now, "dispatch.mark_sent_again", {"now": now})
        total += sent
        if sent.refused:
            break
    return total


def _send(
    database: Database, queue: Queue, rows: Sequence[Row], now: datetime, mark: str, more: dict[str, datetime]
) -> Sent:
    taken = queue.send([_message(row, now) for row in rows])
    sent = [row for row in rows if row["id"] in taken]
    if sent:
        with database.transaction() as transaction:
            transaction.run(
                mark,
                ids=[row["id"] for row in sent],
                scheduled_for=[row["scheduled_for"] for row in sent],
                attempts=[row["attempt"] for row in sent],
                sends=[row["sends"] for row in sent],
                **more,
            )
    return Sent(taken=len(sent), refused=len(rows) - len(sent))


def _message(row: Row, now: datetime) -> Message:
    # Rounded down: the worker waits out the rest of the second, and no run is ever early.
    wait = int((row["next_attempt_at"] - now).total_seconds())
    return Message(run_id=row["id"], group=row["tenant_id"], delay_seconds=min(max(wait, 0), MAX_DELAY_SECONDS))
