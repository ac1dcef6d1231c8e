"""The live table of `make run`: a line for each POST as it arrives, and one for each run as it ends or waits again."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from local.receiver import Received

_HEADING = ("", "schedule", "scheduled", "due", "late", "attempt", "status", "key")
_LINE = "{:<5} {:<18} {:<9} {:<9} {:>9} {:>7}  {:<22} {}"
_LINES_A_HEADING = 20
_ENDED = ("succeeded", "failed", "cancelled")


@dataclass(kw_only=True, slots=True)
class Board:
    """Prints lines from several threads. `names` maps schedule ids to what the table calls them."""

    names: Mapping[str, str]
    _due: dict[str, str] = field(default_factory=dict)
    _seen: dict[str, tuple[str, int]] = field(default_factory=dict)
    _printed: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def post(self, received: Received) -> None:
        """A webhook arrived."""
        status = (
            "signature refused" if not received.verified else "duplicate" if received.duplicate else "new, verified"
        )
        scheduled = received.headers.get("x-scheduled-for", "")
        self._print(
            "POST",
            received.headers.get("x-schedule-id", ""),
            scheduled,
            self._due.get(received.headers.get("x-run-id", ""), scheduled),
            received.at,
            received.attempt,
            status,
            received.key,
        )

    def run(self, run: Mapping[str, Any]) -> None:
        """What the API says of a run: printed when it has ended, or goes back to wait after an attempt."""
        self._due[run["id"]] = run["due_at"]
        now = (run["state"], run["attempt"])
        before, self._seen[run["id"]] = self._seen.get(run["id"]), now
        if before is None or before == now:
            return
        if run["state"] in _ENDED or (run["state"] == "planned" and run["attempt"] > 0):
            status = run["state"] if not run.get("reason") else f"{run['state']}: {run['reason']}"
            key = run.get("idempotency_key", "")
            self._print(
                "run", run["schedule_id"], run["scheduled_for"], run["due_at"], None, run["attempt"], status, key
            )

    def _print(
        self,
        what: str,
        schedule: str,
        scheduled: str,
        due: str,
        at: datetime | None,
        attempt: int,
        status: str,
        key: str,
    ) -> None:
        late = "" if at is None or not due else f"{(at - datetime.fromisoformat(due)).total_seconds():+.2f} s"
        name = self.names.get(schedule, schedule[:8])
        with self._lock:
            if self._printed % _LINES_A_HEADING == 0:
                print(_LINE.format(*_HEADING), flush=True)
            self._printed += 1
            line = _LINE.format(what, name[:18], _clock(scheduled), _clock(due), late, attempt, status, f"{key[:12]}…")
            print(line, flush=True)


def _clock(instant: str) -> str:
    return datetime.fromisoformat(instant).astimezone(UTC).strftime("%H:%M:%SZ") if instant else ""
