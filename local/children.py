"""Child processes in sessions of their own: Ctrl-C reaches us alone, and we end each child with all that it started."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    """A running program, its output in a file. Its process id is also its group's."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def ended(self) -> bool:
        return self.process.poll() is not None

    def stop(self, *, grace_seconds: float = 20) -> None:
        """SIGTERM to the program itself, so that it can put its things in order; then SIGKILL to whatever is left."""
        if not self.ended():
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(grace_seconds)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to the program and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def last_words(self, lines: int = 20) -> str:
        """The end of its output, for an error message."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def start(name: str, words: Sequence[str | Path], *, environment: Mapping[str, str], log: Path) -> Child:
    """Starts a program whose output is appended to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    return Child(name=name, process=process, log=log)


def run(name: str, words: Sequence[str | Path], *, environment: Mapping[str, str], folder: Path, log: Path) -> None:
    """Runs a program to its end; RuntimeError with the end of its output when it fails. Stopped when we are."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(word) for word in words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    child = Child(name=name, process=process, log=log)
    try:
        code = process.wait()
    finally:
        child.stop()
    if code != 0:
        raise RuntimeError(f"{name} failed with exit code {code}; the end of {log}:\n{child.last_words()}")


def remember(child: Child, note: Path) -> None:
    """Writes down which process it is, for a later run that finds it left over."""
    started = psutil.Process(child.process.pid).create_time()
    note.write_text(json.dumps({"pid": child.process.pid, "started": started}))


def stop_remembered(note: Path) -> None:
    """Ends the process that `note` names and its group, if it is still that very process, and removes the note."""
    if not note.exists():
        return
    noted = json.loads(note.read_text())
    with suppress(psutil.NoSuchProcess, ProcessLookupError):
        if psutil.Process(noted["pid"]).create_time() == noted["started"]:
            os.killpg(noted["pid"], signal.SIGKILL)
    note.unlink()


def wait_until[T](condition: Callable[[], T | None], what: str, *, seconds: float, pause: float = 0.1) -> T:
    """The first truthy value of `condition`; TimeoutError that names `what` when there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for {what}")
        time.sleep(pause)
