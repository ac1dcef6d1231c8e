"""`make run`: the whole system on this machine, with a demo tenant, until Ctrl-C."""

import sys
import time
from datetime import datetime

import requests

from local import stack, tenant
from local.board import Board
from local.notes import Notes
from local.project import KEPT
from local.receiver import Receiver
from local.tenant import Refused, Tenant

_SCHEDULES = {
    "every ten seconds": {"rate": "10 seconds"},
    "every minute": {"cron": "* * * * *", "timezone": "Europe/Berlin"},
}
_LOOK_EVERY_SECONDS = 2


def main() -> int:
    """Sets up what is missing, shows what happens, and stops all that it started."""
    receiver = Receiver(secret=tenant.last_secret(KEPT))
    try:
        # What an earlier run left in the queue is delivered as soon as the stack is up.
        with stack.running(KEPT, say=_say, first=lambda notes: _listen(receiver, notes)) as running:
            _show(running, receiver)
    except KeyboardInterrupt:
        _say("stopped; the data is kept under .local")
    except (RuntimeError, TimeoutError, FileNotFoundError) as error:
        print(f"make run: {error}", file=sys.stderr)
        return 1
    finally:
        receiver.stop()
    return 0


def _show(running: stack.Stack, receiver: Receiver) -> None:
    credentials = tenant.kept(running, "demo")
    receiver.secret = credentials.signing_secret
    client = Tenant(api_url=running.api_url, credentials=credentials)
    board = Board(names=_schedules(client, receiver))
    receiver.on_received = board.post
    print(_introduction(running, credentials), flush=True)
    while True:
        _look(client, board)
        time.sleep(_LOOK_EVERY_SECONDS)


def _listen(receiver: Receiver, notes: Notes) -> None:
    try:
        receiver.start(notes.port("receiver"))
    except OSError:
        receiver.start(notes.move("receiver"))


def _schedules(client: Tenant, receiver: Receiver) -> dict[str, str]:
    """The demo's schedules, made or pointed at the receiver's present port: their ids and names."""
    there = {each["name"]: each for each in client.schedules()}
    names = {}
    for name, timing in _SCHEDULES.items():
        url = receiver.url("/" + name.replace(" ", "-"))
        schedule = there.get(name) or client.create(name=name, url=url, **timing)
        if schedule["url"] != url:
            schedule = client.edit(schedule["id"], url=url)
        names[schedule["id"]] = name
    return names


def _look(client: Tenant, board: Board) -> None:
    for schedule in board.names:
        try:
            for run in reversed(client.runs(schedule)):
                board.run(run)
        except (Refused, requests.RequestException) as error:
            _say(str(error))


def _introduction(running: stack.Stack, credentials: tenant.Credentials) -> str:
    return f"""
The API:  {running.api_url}/v1/schedules
The key:  {credentials.api_key}
Try it:   curl -s {running.api_url}/v1/schedules -H 'Authorization: Bearer {credentials.api_key}'

A line for each webhook as it arrives, and for each run as it ends. The planner ticks once a minute. Ctrl-C stops it all.
"""


def _say(text: str) -> None:
    print(f"{datetime.now():%H:%M:%S}  {text}", flush=True)  # noqa: DTZ005 - the reader's own clock


if __name__ == "__main__":
    sys.exit(main())
