"""The stack as a user has it: the template built and deployed onto the local endpoint, once for all tests here."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local import stack
from local.receiver import Receiver
from local.smoke import LEASE


@pytest.fixture(scope="session")
def deployed() -> Iterator[stack.Stack]:
    """A stack in a folder of its own, with the shortest lease that the rules allow."""
    with (
        tempfile.TemporaryDirectory(prefix="carillon-deployed-") as folder,
        stack.running(Path(folder), say=print, parameters=LEASE) as running,
    ):
        yield running


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A tenant's HTTP server on a free port."""
    receiver = Receiver()
    receiver.start()
    yield receiver
    receiver.stop()
