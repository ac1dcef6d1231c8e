"""What `sam build` makes: small, and the same each time."""

import hashlib
import io
import subprocess
import zipfile
from pathlib import Path

import pytest

from local import rds_roots, release
from local.endpoint import clean_environment
from local.project import PROJECT, tool

pytestmark = pytest.mark.deployed

_KIB, _MIB = 2**10, 2**20
_FUNCTIONS = ("Admin", "Api", "Authorizer", "DeadLetter", "Delivery", "Maintenance", "Planner")
_LAYERS = ("DependenciesLayer", "SchedulerLayer")


@pytest.fixture(scope="module")
def build() -> Path:
    release.build()
    return release.BUILD


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _unzipped(folder: Path) -> int:
    return sum(path.stat().st_size for path in _files(folder))


def _zipped(folder: Path) -> int:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in _files(folder):
            archive.write(path, path.relative_to(folder))
    return len(buffer.getvalue())


def _digests(build: Path) -> dict[str, str]:
    """A SHA-256 for each function and layer, of the names and contents of its files."""
    found = {}
    for artefact in sorted(path for path in build.iterdir() if path.is_dir()):
        digest = hashlib.sha256()
        for path in _files(artefact):
            digest.update(f"{path.relative_to(artefact)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
        found[artefact.name] = digest.hexdigest()
    return found


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_a_function_is_less_than_100_kib(build: Path, name: str) -> None:
    assert _zipped(build / f"{name}Function") < 100 * _KIB


def test_our_layer_is_less_than_a_mib_and_the_dependencies_less_than_50(build: Path) -> None:
    assert _unzipped(build / "SchedulerLayer") < _MIB
    assert _unzipped(build / "DependenciesLayer") < 50 * _MIB


def test_our_layer_carries_the_authorities_of_rds(build: Path) -> None:
    built = build / "SchedulerLayer" / "python" / rds_roots.FILE.relative_to(PROJECT / "shared")
    assert built.read_bytes() == rds_roots.FILE.read_bytes()


def test_two_builds_of_the_same_sources_are_equal(build: Path, tmp_path: Path) -> None:
    again = tmp_path / "build"
    subprocess.run(
        [tool("sam", "sam"), "build", "--no-cached", "--build-dir", again],
        cwd=PROJECT,
        env={
            **clean_environment(),
            "SAM_CLI_TELEMETRY": "0",
            "AWS_DEFAULT_REGION": "eu-west-1",
            "TMPDIR": str(tmp_path),
        },
        capture_output=True,
        check=True,
    )
    first, second = _digests(build), _digests(again)
    assert set(first) == {*_LAYERS, "MigrateFunction", *(f"{name}Function" for name in _FUNCTIONS)}
    assert first == second
