"""Pinned requirements: exact versions with hashes, from no address of ours."""

import re
from pathlib import Path

import pytest

_PROJECT = Path(__file__).parents[2]
_PINNED = [
    "layers/dependencies/requirements.txt",
    "functions/migrate/requirements.txt",
    "requirements/dev.txt",
    "requirements/sam.txt",
    "requirements/ministack.txt",
    "requirements/checkov.txt",
    "requirements/lock.txt",
]


@pytest.mark.parametrize("path", _PINNED)
def test_every_requirement_is_one_version_with_hashes(path: str) -> None:
    entries = re.sub(r"\\\n", " ", (_PROJECT / path).read_text())
    lines = [line for line in entries.splitlines() if line.strip() and not line.strip().startswith("#")]
    assert lines
    assert all(re.match(r"[a-z0-9][a-z0-9.\-]*==\S+ +--hash=sha256:[0-9a-f]{64}", line) for line in lines)


@pytest.mark.parametrize("path", _PINNED)
def test_every_package_that_we_chose_has_its_reason_in_a_decision(path: str) -> None:
    reasons = " ".join(page.read_text() for page in (_PROJECT / "docs" / "decisions").glob("*.md")).lower()
    lines = (_PROJECT / path).with_suffix(".in").read_text().splitlines()
    chosen = [line.partition("[")[0] for line in lines if line and not line.startswith(("-", "#"))]
    assert chosen
    # A name inside another's, such as httpx in httpx2, is no reason.
    assert [name for name in chosen if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", reasons)] == []


@pytest.mark.parametrize("path", _PINNED)
def test_no_file_says_where_packages_come_from(path: str) -> None:
    text = (_PROJECT / path).read_text()
    assert not re.search(r"https?://|file:/|--(extra-)?index-url|--find-links|--trusted-host", text)


def test_the_tests_run_on_the_packages_that_the_functions_run_on() -> None:
    def pins(path: str) -> set[str]:
        return set(re.findall(r"^[a-z0-9.\-]+==\S+", (_PROJECT / path).read_text(), re.MULTILINE))

    assert pins("layers/dependencies/requirements.txt") <= pins("requirements/dev.txt")
    assert pins("functions/migrate/requirements.txt") <= pins("requirements/dev.txt")


@pytest.mark.parametrize("name", ["admin", "api", "authorizer", "dead_letter", "delivery", "maintenance", "planner"])
def test_a_function_carries_no_packages_of_its_own(name: str) -> None:
    text = (_PROJECT / "functions" / name / "requirements.txt").read_text()
    assert all(line.startswith("#") for line in text.splitlines())
