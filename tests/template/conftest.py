"""The template, read once; its transform takes SAM a second."""

from pathlib import Path
from typing import Any

import pytest

from tests.template.reading import Resolved, environments, read, transform


@pytest.fixture(scope="session")
def template() -> dict[str, Any]:
    return read()


@pytest.fixture(scope="session")
def functions(template: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The functions by the name of their folder."""
    resources = template["Resources"].values()
    found = [each for each in resources if each["Type"] == "AWS::Serverless::Function"]
    return {Path(each["Properties"]["CodeUri"]).name: each for each in found}


@pytest.fixture(scope="session")
def transformed(template: dict[str, Any]) -> dict[str, Any]:
    return transform(template)


@pytest.fixture(scope="session")
def production(transformed: dict[str, Any]) -> Resolved:
    """What `sam deploy --config-env production` makes."""
    return Resolved(transformed, environments()["production"])


@pytest.fixture(scope="session")
def fresh(transformed: dict[str, Any]) -> Resolved:
    """What a deploy without any parameter makes."""
    return Resolved(transformed, {})
