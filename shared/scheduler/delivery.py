"""Delivery: one SQS batch of run ids is one claim, its POSTs side by side, one record, and the messages to keep.

A message leaves the queue only when the database says what became of its run. Whatever goes wrong in between keeps it: the
queue hands it out again, and the claim decides anew.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from scheduler.attempt import Anchor, attempt, longest_queue_wait
from scheduler.aws.bus import Bus, Event
from scheduler.aws.keys import Keys
from scheduler.aws.queue import Message as Sendable
from scheduler.aws.queue import Queue
from scheduler.breaker import BreakerPolicy
from scheduler.errors import DatabaseUnavailable
from scheduler.http.client import Client
from scheduler.lease_times import MARGIN_SECONDS
from scheduler.leases import Claim, Lease, Verdict, claim
from scheduler.outbox import publish_own
from scheduler.recording import DEFAULT_BREAKER, Settlement, lateness_ms, record
from scheduler.report import Report
from scheduler.runs import State, parse_run_id
from scheduler.shares import TENANT_CONCURRENCY
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, StatementRefused
from scheduler.webhook.outcome import Answer, Failure


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One received SQS message. `receives` counts this receive too."""

    message_id: str
    receipt_handle: str
    body: str
    receives: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Courier:
    """The use case over its parts. `remaining` is the seconds that this invocation still has.

    `disable` carries out what outcomes have ordered to be disabled (see scheduler.disabling), while it is given time.
    Without a clock the time is the database's, read by the claim itself.
    """

    database: Database
    queue: Queue
    bus: Bus
    keys: Keys
    client: Client
    disable: Callable[[Callable[[], bool]], object]
    deadline_seconds: float
    remaining: Callable[[], float]
    report: Report
    clock: Clock | None = None
    tenant_concurrency: int = TENANT_CONCURRENCY
    breaker: BreakerPolicy = DEFAULT_BREAKER

    def deliver(self, messages: Sequence[Message]) -> list[str]:
        """Delivers a batch and returns the ids of the messages to keep; never raises for what runs or receivers do."""
        batch = _Batch(self, messages)
        try:
            batch.deliver()
        except (DatabaseUnavailable, StatementRefused) as error:
            self.report("delivery.database_failed", error=str(error))
        self.queue.put_off(batch.waits)
        self._follow_up(batch)
        return [message.message_id for message in messages if message.message_id not in batch.done]

    def _follow_up(self, batch: "_Batch") -> None:
        """What is left to do when all is recorded. It is stored: what is not done here is the planner's."""
        if batch.woken:
            self.queue.send(batch.woken)
        try:
            if self.remaining() > MARGIN_SECONDS:
                publish_own(self.database, self.bus, batch.events)
            if batch.disables:
                self.disable(lambda: self.remaining() > MARGIN_SECONDS)
        except (DatabaseUnavailable, StatementRefused) as error:
            self.report("delivery.database_failed", error=str(error))


class _Batch:
    """One batch under way: what is not `done` is kept, and comes back after its wait or the queue's own timeout."""

    def __init__(self, courier: Courier, messages: Sequence[Message]) -> None:
        self.courier = courier
        self.done: set[str] = set()
        self.waits: list[tuple[str, int]] = []
        self.disables = False
        self.woken: list[Sendable] = []
        self.events: list[Event] = []
        self.by_run: dict[UUID, Message] = {}
        for message in messages:
            run_id = parse_run_id(message.body)
            # What names no run, and a second copy of a run in one batch, has nothing to wait for.
            if run_id is None or run_id in self.by_run:
                self.done.add(message.message_id)
                courier.report("message.dropped", message_id=message.message_id, duplicate=run_id is not None)
            else:
                self.by_run[run_id] = message

    def deliver(self) -> None:
        claimed = self._deliver(list(self.by_run), alone=False)
        # A run whose last claim left no outcome may have killed its worker: its neighbours are recorded before it goes.
        for run_id, verdict in (claimed.verdicts if claimed else {}).items():
            if verdict is Verdict.SUSPECT and self._deliver([run_id], alone=True) is None:
                break

    def _deliver(self, run_ids: list[UUID], *, alone: bool) -> Claim | None:
        """Claims and delivers; None where there is nothing to do, or no time for a whole attempt."""
        courier = self.courier
        if not run_ids or courier.remaining() < courier.deadline_seconds + MARGIN_SECONDS:
            return None
        claimed = claim(
            courier.database,
            courier.clock,
            {run_id: longest_queue_wait(self.by_run[run_id].receives) for run_id in run_ids},
            lease=timedelta(seconds=courier.remaining()),
            alone=alone,
            tenant_concurrency=courier.tenant_concurrency,
        )
        anchor = Anchor(time=claimed.now, monotonic=time.monotonic())
        self.events += claimed.events
        if claimed.leases:
            self._attempt(claimed.leases, anchor)
        self._settle_others(claimed)
        return claimed

    def _attempt(self, leases: Sequence[Lease], anchor: Anchor) -> None:
        with ThreadPoolExecutor(max_workers=len(leases)) as posts:
            settlements = list(posts.map(lambda lease: self._attempt_one(lease, anchor), leases))
        recorded = self._record(settlements, anchor)
        for settlement in settlements:
            self._tell(settlement, recorded=settlement.lease.run_id in recorded)
            if settlement.lease.run_id in recorded:
                self._keep_or_drop(settlement, anchor)

    def _attempt_one(self, lease: Lease, anchor: Anchor) -> Settlement:
        courier = self.courier
        return attempt(
            lease,
            client=courier.client,
            keys=courier.keys,
            anchor=anchor,
            deadline=lambda: min(courier.deadline_seconds, courier.remaining() - MARGIN_SECONDS),
            receives=self.by_run[lease.run_id].receives,
        )

    def _record(self, settlements: Sequence[Settlement], anchor: Anchor) -> set[UUID]:
        """The runs whose outcome the database has: recorded now, or settled by another claim."""
        try:
            return self._record_once(settlements, anchor)
        except DatabaseUnavailable:
            # Guarded by the fencing tokens: where the answer that was lost was a yes, this changes nothing.
            return self._record_once(settlements, anchor)
        except StatementRefused:
            # One by one: a row that can't be stored must not re-POST its neighbours.
            return {run_id for settlement in settlements for run_id in self._record_or_report(settlement, anchor)}

    def _record_once(self, settlements: Sequence[Settlement], anchor: Anchor) -> set[UUID]:
        now = anchor.now()
        done = record(
            self.courier.database,
            settlements,
            now=now,
            held_until=now + timedelta(seconds=self.courier.remaining()),
            breaker=self.courier.breaker,
        )
        self.disables |= done.disables
        self.woken += done.woken
        self.events += done.events
        return {settlement.lease.run_id for settlement in settlements}

    def _record_or_report(self, settlement: Settlement, anchor: Anchor) -> set[UUID]:
        try:
            return self._record_once([settlement], anchor)
        except StatementRefused as error:
            self.courier.report("record.refused", run_id=str(settlement.lease.run_id), error=str(error))
            return set()

    def _keep_or_drop(self, settlement: Settlement, anchor: Anchor) -> None:
        message = self.by_run[settlement.lease.run_id]
        if settlement.state is State.QUEUED:
            self._wait(message, settlement.next_attempt_at - anchor.now())
        else:
            self.done.add(message.message_id)

    def _settle_others(self, claimed: Claim) -> None:
        for run_id, verdict in claimed.verdicts.items():
            message = self.by_run[run_id]
            match verdict:
                case Verdict.CLAIMED:
                    continue
                case Verdict.EARLY:
                    self._wait(message, claimed.early[run_id] - claimed.now)
                case Verdict.HELD | Verdict.SUSPECT:
                    # Another worker's, or to be claimed alone: until then the message is kept.
                    pass
                case _:
                    # The run has ended, or is planned and the planner's.
                    self.done.add(message.message_id)
            self.courier.report(f"run.{verdict.value}", run_id=str(run_id))

    def _wait(self, message: Message, wait: timedelta) -> None:
        # Rounded down, as the delay of a dispatch: the worker waits out the rest.
        self.waits.append((message.receipt_handle, max(0, int(wait.total_seconds()))))

    def _tell(self, settlement: Settlement, *, recorded: bool) -> None:
        lease, result = settlement.lease, settlement.result
        self.courier.report(
            f"run.{settlement.logged or 'untried'}",
            run_id=str(lease.run_id),
            schedule_id=str(lease.schedule_id),
            tenant_id=str(lease.tenant_id),
            attempt=lease.attempt,
            lateness_ms=lateness_ms(settlement),
            status=result.status if isinstance(result, Answer) else None,
            stage=result.stage.value if isinstance(result, Failure) else None,
            reason=settlement.reason and settlement.reason.value,
            recorded=recorded,
        )
