"""What a cold start imports costs little more than the two packages that every function stands on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_PROJECT = Path(__file__).parents[1]
# migrate is not here: it runs once a deploy, on alembic.
_NAMES = ("admin", "api", "authorizer", "dead_letter", "delivery", "maintenance", "planner")
_MOST = 1.5
_TRIES = 9
# Processor time, since the machine may have other work; the least of several, since noise only adds.
_MEASURE = "import time; begun = time.process_time(); {}; print(time.process_time() - begun)"
_BOTH_ALONE = _MEASURE.format("import boto3, aws_lambda_powertools")


def _seconds(code: str, *paths: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {[str(path) for path in paths]!r}; {code}"],
        check=True,
        capture_output=True,
        text=True,
        # As in every function of the template.
        env=os.environ | {"PYTHONTZPATH": ""},
    )
    return float(done.stdout)


@pytest.mark.bench
@pytest.mark.parametrize("name", _NAMES)
def test_importing_a_handler_takes_at_most_half_as_long_again_as_boto3_and_powertools(name: str) -> None:
    paths = (_PROJECT / "functions" / name, _PROJECT / "shared")
    pairs = [(_seconds(_MEASURE.format("import app"), *paths), _seconds(_BOTH_ALONE)) for _ in range(_TRIES)]
    handler, alone = (min(column) for column in zip(*pairs, strict=True))
    print(f"imports of {name}: ratio={handler / alone:.2f} (at most {_MOST})")  # noqa: T201 - the figure is the result
    assert handler <= _MOST * alone
