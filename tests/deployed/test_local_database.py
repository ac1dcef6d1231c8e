"""The embedded server does not outlive who started it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

from local.children import wait_until
from local.project import PROJECT

_STARTS = """
import sys
from pathlib import Path
from local import postgres
postgres.start(Path(sys.argv[1]))
print("started", flush=True)
sys.stdin.read()
"""


def test_a_server_stops_when_its_starter_is_killed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    words = [sys.executable, "-c", _STARTS, str(data)]
    with subprocess.Popen(words, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as starter:
        assert starter.stdout
        assert starter.stdout.readline() == b"started\n"
        server = psutil.Process(int((data / "postmaster.pid").read_text().split()[0]))
        os.kill(starter.pid, signal.SIGKILL)
        wait_until(lambda: not server.is_running(), "the server to stop", seconds=30)
