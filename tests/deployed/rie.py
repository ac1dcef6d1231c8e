"""A function's sandbox without a container: AWS's runtime interface emulator, its Python client, and what `sam build` left."""

import os
import platform
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import requests

from local import children, postgres
from local.project import PROJECT
from local.release import BUILD

_CLIENT = ("awslambdaric", "simplejson", "snapshot-restore-py")
_RAPID = "lib/python3.13/site-packages/samcli/local/rapid"
_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "arm64", "arm64": "arm64"}


def client_packages(folder: Path) -> Path:
    """A folder with the runtime's client and nothing else of this environment, so that the layers must carry the rest."""
    folder.mkdir(parents=True)
    for package in map(distribution, _CLIENT):
        for name in {file.parts[0] for file in package.files or ()} - {"__pycache__", ".."}:
            (folder / name).symlink_to(str(package.locate_file(name)))
    return folder


@dataclass(frozen=True, kw_only=True, slots=True)
class Sandbox:
    """One function in one process, for one invocation at a time."""

    port: int
    child: children.Child

    def invoke(self, event: Mapping[str, Any]) -> Any:
        """The function's answer as JSON; AssertionError with the function's log where there is none."""
        url = f"http://127.0.0.1:{self.port}/2015-03-31/functions/function/invocations"
        with requests.Session() as session:
            session.trust_env = False
            answer = session.post(url, json=event, timeout=120)
        assert answer.ok, f"{answer.status_code} {answer.text}\n{self.child.last_words()}"
        result = answer.json()
        assert not (isinstance(result, dict) and "errorType" in result), f"{result}\n{self.child.last_words()}"
        return result


def start(
    function: str, *, environment: Mapping[str, str], client: Path, log: Path, timeout_seconds: int = 60
) -> Sandbox:
    """Starts the sandbox of a built function, `PlannerFunction` say, with its layers and no other package."""
    layers = [BUILD / layer / "python" for layer in ("DependenciesLayer", "SchedulerLayer")]
    api, runtime = postgres.free_port(), postgres.free_port()
    settings = {
        **environment,
        "PATH": os.defpath,
        "LAMBDA_TASK_ROOT": str(BUILD / function),
        "PYTHONPATH": os.pathsep.join(map(str, [BUILD / function, *layers, client])),
        "AWS_LAMBDA_FUNCTION_NAME": function,
        "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout_seconds),
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
    }
    emulator = PROJECT / ".venv-sam" / _RAPID / f"aws-lambda-rie-{_MACHINES[platform.machine().lower()]}"
    words = [
        emulator,
        *("--runtime-interface-emulator-address", f"127.0.0.1:{api}"),
        *("--runtime-api-address", f"127.0.0.1:{runtime}"),
        *("--log-level", "error"),
        *(_bare_python(), "-S", "-B", "-m", "awslambdaric", "app.handler"),
    ]
    child = children.start(function, words, environment=settings, log=log)
    children.wait_until(lambda: child.ended() or _listens(api), f"the emulator of {function} to listen", seconds=30)
    return Sandbox(port=api, child=child)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _bare_python() -> str:
    """The interpreter that this environment was made from; with -S it sees the standard library alone."""
    return str(getattr(sys, "_base_executable", sys.executable))
