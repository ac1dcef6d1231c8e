"""Child processes in sessions of their own: Ctrl-C reaches us alone, and we end each child with all that it started."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def when_we_end(words: Sequence[str | Path], **account: Any) -> subprocess.Popen[bytes]:
    """Runs a program once this process has ended, however it ended: the pipe is closed then. Killed, it runs nothing."""
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; exec "$@"', "sh", *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        **account,
    )


def never_mind(waiting: subprocess.Popen[bytes]) -> None:
    """Ends what `when_we_end` began."""
    waiting.kill()
    waiting.communicate()


@dataclass(frozen=True, kw_only=True, slots=True)
class Child:
    """A running program, its output in a file. Its process id is also its group's. It ends when we do."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    guard: subprocess.Popen[bytes]

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
        never_mind(self.guard)

    def last_words(self, lines: int = 20) -> str:
        """The end of its output, for an error message."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def start(
    name: str,
    words: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    log: Path,
    folder: Path | None = None,
    anew: bool = False,
) -> Child:
    """Starts a program, in `folder` if one is given, whose output is appended to `log`; `anew` empties that first."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb" if anew else "ab") as output:
        process = subprocess.Popen(
            [str(word) for word in words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    guard = when_we_end(["/bin/sh", "-c", f"kill -9 -{process.pid}"])
    return Child(name=name, process=process, log=log, guard=guard)


def run(name: str, words: Sequence[str | Path], *, environment: Mapping[str, str], folder: Path, log: Path) -> None:
    """Runs a program to its end; RuntimeError with the end of its output when it fails. Stopped when we are."""
    child = start(name, words, environment=environment, folder=folder, log=log, anew=True)
    try:
        code = child.process.wait()
    finally:
        child.stop()
    if code != 0:
        raise RuntimeError(f"{name} failed with exit code {code}; the end of {log}:\n{child.last_words()}")


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
