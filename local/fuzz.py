"""`make fuzz`: the deployed API against its own contract, by requests that schemathesis makes up from it."""

import subprocess
import sys
import tempfile
from pathlib import Path

from local import stack
from local.smoke import LEASE

_CONTRACT = Path(__file__).parents[1] / "contracts" / "openapi" / "scheduler.yaml"
_CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)


def main() -> int:
    """Prints schemathesis's own report; 0 where it found no 5xx and no answer that the contract does not describe."""
    with (
        tempfile.TemporaryDirectory(prefix="carillon-fuzz-") as folder,
        stack.running(Path(folder), say=print, parameters=LEASE) as running,
    ):
        made = running.invoke("AdminFunctionName", {"action": "create_tenant", "name": "made up"})
        limits = {"requests_per_second": 1000}
        running.invoke("AdminFunctionName", {"action": "set_limits", "tenant_id": made["tenant_id"], "limits": limits})
        return _fuzz(running, made["api_key"], folder)


def _fuzz(running: stack.Stack, api_key: str, folder: str) -> int:
    command = Path(sys.executable).with_name("schemathesis")
    done = subprocess.run(
        [
            *(command, "run", _CONTRACT, "--url", running.api_url, "-H", f"Authorization: Bearer {api_key}"),
            *(
                "--checks",
                ",".join(_CHECKS),
                "--phases",
                "examples,coverage,fuzzing",
                "--max-examples",
                "20",
                "--no-color",
            ),
            *("--max-time", "300", "--warnings", "off"),
        ],
        check=False,
        cwd=folder,
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
