"""Name resolution that can't outlive its caller: getaddrinfo in a daemon thread, a bounded number at a time."""

import queue
import socket
import threading
import time
from collections.abc import Callable, Sequence

# What a look-up came to: addresses, or what the resolver raised.
type Found = tuple[str, ...] | Exception

# Blocks until it has every address of the host, as text, or raises OSError. Tests answer with lies.
type Resolver = Callable[[str, int], Sequence[str]]

# Enough that one tenant's dead name servers leave room: a hanging look-up gives up by itself after some 10 to 20 s.
MAX_LOOKUPS = 64


def system_resolver(host: str, port: int) -> tuple[str, ...]:
    """Every IPv4 address that the system knows for the host, in its order of preference.

    IPv4 alone: a VPC's own IPv6 range is public space, which no table of addresses can tell from the Internet.
    """
    found = socket.getaddrinfo(host, port, socket.AF_INET, socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class Lookups:
    """Runs one resolver under deadlines. getaddrinfo can't be interrupted: one that hangs is left behind.

    At most `most` run or hang at once for one object; further ones wait inside their deadline.
    """

    def __init__(self, resolver: Resolver, most: int = MAX_LOOKUPS) -> None:
        self._resolver = resolver
        self._slots = threading.BoundedSemaphore(most)

    def resolve(self, host: str, port: int, seconds: float) -> tuple[str, ...]:
        """The host's addresses; OSError where there are none, TimeoutError where they did not come in time."""
        ends = time.monotonic() + seconds
        if not self._slots.acquire(timeout=seconds):
            raise TimeoutError("too many name lookups hang")
        answer: queue.SimpleQueue[Found] = queue.SimpleQueue()
        self._start(host, port, answer)
        try:
            found = answer.get(timeout=max(0.0, ends - time.monotonic()))
        except queue.Empty:
            raise TimeoutError("the name was not resolved in time") from None
        if isinstance(found, Exception):
            raise OSError(f"the name was not resolved: {found}") from found
        if not found:
            raise OSError("the name has no address")
        return found

    def _start(self, host: str, port: int, answer: "queue.SimpleQueue[Found]") -> None:
        thread = threading.Thread(target=self._look_up, args=(host, port, answer), name="lookup", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads: the slot must not be lost with it
            self._slots.release()
            raise

    def _look_up(self, host: str, port: int, answer: "queue.SimpleQueue[Found]") -> None:
        try:
            answer.put(tuple(self._resolver(host, port)))
        except Exception as error:  # handed to the waiting caller: here it would only end the thread
            answer.put(error)
        finally:
            self._slots.release()
