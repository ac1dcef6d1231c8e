"""The client under test against receivers on this machine, with a resolver that knows only this machine."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from scheduler.http.client import Client

from tests.http.receiver import LOCAL, Receiver, Script, loopback, says_ok


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client(LOCAL, resolver=loopback)
    yield made
    made.close()


@pytest.fixture
def receiver() -> Iterator[Callable[..., Receiver]]:
    """Makes receivers that stop with the test."""
    with ExitStack() as stack:

        def make(script: Script = says_ok) -> Receiver:
            return stack.enter_context(Receiver(script))

        yield make
