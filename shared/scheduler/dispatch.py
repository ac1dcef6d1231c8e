"""Dispatch and sweep: planned runs become messages, and what was lost on the way is sent again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """How many messages SQS took, and how many it did not: those stay as they are for the next tick.

    `held_back`: the last look left due runs behind, for their tenants' limits or since the queue refused some.
    """

    taken: int
    refused: int
    held_back: bool = False

    def __add__(self, other: "Sent") -> "Sent":
        return Sent(taken=self.taken + other.taken, refused=self.refused + other.refused, held_back=other.held_back)


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
        total, cut = _NOTHING, True
        while cut and not total.refused and more_time():
            now, rows = self._find(schedule_id)
            for call in batched([row for row in rows if not row["left_behind"]], _CALL, strict=False):
                if more_time():
                    total += _send(self.database, self.queue, call, now, "dispatch.mark_queued", {})
            total = replace(total, held_back=total.refused > 0 or any(row["left_behind"] for row in rows))
            cut = any(row["cut"] for row in rows)
        return total

    def refill(self, sent: Sent, *, more_time: Callable[[], bool], pause: Callable[[], None]) -> Sent:
        """Goes on after a dispatch that sent `sent`, with a pause before each look, while the last one left runs behind."""
        while sent.held_back and more_time():
            pause()
            sent += self.dispatch(more_time=more_time)
        return sent

    def _find(self, schedule_id: UUID | None) -> tuple[datetime, list[Row]]:
        with self.database.transaction() as transaction:
            now = self.clock(transaction)
            return now, transaction.run(
                "dispatch.find_planned",
                now=now,
                horizon=now + LOOK_AHEAD,
                schedule_id=schedule_id,
                tenant_queued=self.tenant_queued,
                tenant_concurrency=self.tenant_concurrency,
                most=_PAGE,
            )


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
        # One that is locked is sent without a mark: at a second look it would be sent again, and again.
        if sent.refused or len(rows) < _CALL:
            break
    return total


def _send(
    database: Database, queue: Queue, rows: Sequence[Row], now: datetime, mark: str, more: dict[str, datetime]
) -> Sent:
    taken = queue.send([message_for(row["id"], row["tenant_id"], row["next_attempt_at"], now) for row in rows])
    sent = [row for row in rows if row["id"] in taken]
    if sent:
        with database.transaction() as transaction:
            transaction.run(
                mark,
                ids=[row["id"] for row in sent],
                scheduled_for=[row["scheduled_for"] for row in sent],
                earliest=min(row["scheduled_for"] for row in sent),
                latest=max(row["scheduled_for"] for row in sent),
                attempts=[row["attempt"] for row in sent],
                sends=[row["sends"] for row in sent],
                **more,
            )
    return Sent(taken=len(sent), refused=len(rows) - len(sent))


def message_for(run_id: UUID, tenant_id: UUID, next_attempt_at: datetime, now: datetime) -> Message:
    """The message that asks for a run's next attempt."""
    # Rounded down: the worker waits out the rest of the second, and no run is ever early.
    wait = int((next_attempt_at - now).total_seconds())
    return Message(run_id=run_id, group=tenant_id, delay_seconds=min(max(wait, 0), MAX_DELAY_SECONDS))
