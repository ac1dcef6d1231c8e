"""Planning: due calendars become runs, each occurrence exactly once, and their cursors move."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduler.backlog import MOST_OCCURRENCES, in_pieces
from scheduler.calendar.zones import tzdata_version
from scheduler.calendars import calendar_spec
from scheduler.look_ahead import LOOK_AHEAD
from scheduler.materialising import Span, advance, materialise, span
from scheduler.retiming import retime_outdated
from scheduler.store.clock import Clock
from scheduler.store.connection import Database, Row, StatementRefused, Transaction

# What one transaction takes on: calendars claimed, and occurrences after which it commits what it has.
_CALENDARS = 250
_OCCURRENCES = 20_000

_RETIME = "retiming.claim_outdated"


@dataclass(kw_only=True, slots=True)
class Plan:
    """What one tick did. The calendars `set_aside` and `refused` need a person; the `busy` ones were locked throughout.

    `calendars`: a late one counts once for each piece. `shifted`: those that mean other times by newer time zone data.
    """

    calendars: int = 0
    runs: int = 0
    shifted: int = 0
    busy: int = 0
    # Calendar id -> why it could not be computed (set aside for good) or not be stored (left alone in this tick).
    set_aside: dict[int, str] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)


def plan(database: Database, clock: Clock, *, retention: timedelta, more_time: Callable[[], bool]) -> Plan:
    """Materialises all that is due up to the look-ahead, in transactions of bounded size, while `more_time()`.

    Any number of planners may run at once, with clocks that differ: UNIQUE (schedule_id, scheduled_for) and the cursors,
    which only move forward, decide. A kill between two transactions loses nothing: the next tick goes on from there.
    """
    tick = _Tick(database, clock, retention)
    # Calendars held by a change of the API are passed over twice, then waited for: else a busy one would starve.
    for claim in ("planning.claim_calendars", "planning.claim_calendars", "planning.wait_for_calendars"):
        for step in (_RETIME, claim):
            while more_time() and tick.step(step):
                pass
        if not tick.count_busy():
            break
    return tick.plan


class _Tick:
    """One tick under way: its transactions share a plan and the calendars to leave alone."""

    def __init__(self, database: Database, clock: Clock, retention: timedelta) -> None:
        self.plan = Plan()
        self._database = database
        self._clock = clock
        self._retention = retention
        self._most = _CALENDARS
        self._at_hand: list[int] = []

    def step(self, claim: str) -> bool:
        """One transaction: claims, computes, stores, moves the cursors. False when there was nothing to claim.

        Where the database refuses a batch, its calendars are taken one by one from then on, so that the one at fault
        stops no other.
        """
        try:
            with self._database.transaction() as transaction:
                return self._step(transaction, claim)
        except StatementRefused as error:
            if len(self._at_hand) == 1:
                self.plan.refused |= dict.fromkeys(self._at_hand, str(error))
            self._most = 1
            return bool(self._at_hand)

    def count_busy(self) -> int:
        """How many calendars are due and not yet planned."""
        with self._database.transaction() as transaction:
            horizon = self._clock(transaction) + LOOK_AHEAD
            self.plan.busy = transaction.run("planning.count_due", **self._due(horizon))[0]["due"]
        return self.plan.busy

    def _step(self, transaction: Transaction, claim: str) -> bool:
        self._at_hand = []
        now = self._clock(transaction)
        horizon = now + LOOK_AHEAD
        if claim == "planning.wait_for_calendars":
            transaction.run("planning.bound_wait")
        rows = transaction.run(claim, most=self._most, **self._due(horizon, claim))
        if not rows:
            return False
        self._at_hand = [row["id"] for row in rows]
        faults: dict[int, str] = {}
        if claim == _RETIME:
            self.plan.shifted += retime_outdated(transaction, rows, faults, now=now, retention=self._retention)
            self._set_aside(transaction, faults, now)
            return True
        spans = list(_bounded(self._spans(rows, horizon, faults)))
        whole, pieces = in_pieces(transaction, spans, now)
        self._plan(transaction, whole, now)
        # The others' turn comes when those that were whole are through.
        for piece in pieces[:1]:
            self._plan(transaction, [piece.span], now, later=piece.later)
        self._set_aside(transaction, faults, now)
        return True

    def _plan(
        self, transaction: Transaction, spans: Sequence[Span], now: datetime, *, later: Sequence[datetime] = ()
    ) -> None:
        if spans:
            self.plan.runs += materialise(transaction, spans, now=now, retention=self._retention, later=later)
            advance(transaction, spans)
            self.plan.calendars += len(spans)

    def _due(self, horizon: datetime, claim: str = "") -> dict[str, object]:
        which: dict[str, object] = {"tzdata_version": tzdata_version(), "left_alone": list(self.plan.refused)}
        return which if claim == _RETIME else which | {"horizon": horizon}

    def _spans(self, rows: list[Row], horizon: datetime, faults: dict[int, str]) -> Iterator[Span]:
        for row in rows:
            try:
                yield span(calendar_spec(row), row["id"], row["planned_through"], horizon, most=MOST_OCCURRENCES)
            except Exception as error:
                faults[row["id"]] = f"{type(error).__name__}: {error}"

    def _set_aside(self, transaction: Transaction, faults: dict[int, str], now: datetime) -> None:
        if faults:
            transaction.run("planning.set_aside", ids=list(faults), reasons=list(faults.values()), now=now)
            self.plan.set_aside |= faults


def _bounded(spans: Iterator[Span]) -> Iterator[Span]:
    """The first spans, up to the one that reaches the bound; the calendars behind it wait for the next transaction."""
    total = 0
    for one in spans:
        yield one
        total += len(one.instants)
        if total >= _OCCURRENCES:
            return
