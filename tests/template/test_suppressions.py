"""Whatever a linter is told to leave out has its reason beside it."""

import re
from typing import Any

import yaml

from local.project import PROJECT

# A reason is a sentence, not a word.
_REASON = 25


def _reasons(text: str, item: str) -> dict[str, str]:
    """The comment above each list item that matches; empty where another line stands there."""
    found, said = {}, ""
    for line in map(str.strip, text.splitlines()):
        if entry := re.fullmatch(rf"- ({item})", line):
            found[entry[1]] = said
        said = f"{said} {line}" if line.startswith("#") else ""
    return found


def test_what_checkov_leaves_out_for_all_resources_is_explained() -> None:
    text = (PROJECT / ".checkov.yaml").read_text()
    reasons = _reasons(text, r"CKV\w+")
    assert set(reasons) == set(yaml.safe_load(text)["skip-check"])
    assert all(len(reason) > _REASON for reason in reasons.values()), reasons


def test_what_checkov_leaves_out_for_one_resource_is_explained(template: dict[str, Any]) -> None:
    skipped = [
        skip
        for resource in template["Resources"].values()
        for skip in resource.get("Metadata", {}).get("checkov", {}).get("skip", ())
    ]
    assert skipped
    assert all(len(skip["comment"]) > _REASON for skip in skipped), skipped


def test_what_cfn_lint_leaves_out_is_explained(template: dict[str, Any]) -> None:
    lines = (PROJECT / "template.yaml").read_text().partition("ignore_checks:")[2].splitlines()
    reason, *left_out = [line.strip() for line in lines[1:] if line.strip()][: len(_left_out(template)) + 1]
    assert reason.startswith("#")
    assert len(reason) > _REASON
    assert left_out == [f"- {each}" for each in _left_out(template)]


def _left_out(template: dict[str, Any]) -> list[str]:
    return list(template["Metadata"]["cfn-lint"]["config"]["ignore_checks"])
