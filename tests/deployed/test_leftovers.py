"""Nothing that this machine runs for us outlives who started it, a killed one included."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from local.children import wait_until
from local.project import PROJECT

_DATABASE = """
from local import postgres
data = folder / "data"
postgres.start(data)
started = (data / "postmaster.pid").read_text().split()[0]
"""
_PROGRAM = """
from local import children
started = children.start("sleep", ["sleep", "600"], environment={}, log=folder / "log").process.pid
"""
_TELLS = """
import sys
from pathlib import Path
folder = Path(sys.argv[1])
{starts}
print(started, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("starts", [_DATABASE, _PROGRAM], ids=["the database", "a program"])
def test_what_a_killed_process_started_ends_with_it(starts: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", _TELLS.format(starts=starts), str(tmp_path)]
    with subprocess.Popen(words, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as starter:
        assert starter.stdout
        started = psutil.Process(int(starter.stdout.readline()))
        os.kill(starter.pid, signal.SIGKILL)
        wait_until(lambda: not started.is_running(), f"{started} to end", seconds=30)
