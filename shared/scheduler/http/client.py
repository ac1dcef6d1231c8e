"""The outbound client: one signed POST to a tenant's URL that ends in an Answer or a Failure, never in an exception.

Promises: only judged addresses are dialled; nothing outlives the total deadline, a hanging resolver and a dripping
receiver included; redirects are not followed; the environment's proxies and .netrc are not read; at most 64 KiB of a
response are read, never decompressed; one call is one request on the wire at most: a kept-alive connection that turns
out to be dead is a Failure (`reused`), and the next attempt, with its own X-Attempt, opens a new one.
"""

import logging
import time
from http import HTTPStatus
from typing import Any

import certifi
from requests.adapters import HTTPAdapter
from requests.models import PreparedRequest, Response
from requests.structures import CaseInsensitiveDict
from urllib3 import HTTPConnectionPool, PoolManager
from urllib3.response import BaseHTTPResponse

from scheduler.errors import InvalidInput
from scheduler.http.connections import POOL_CLASSES
from scheduler.http.dialler import Dialler
from scheduler.http.exchange import IDLE_SECONDS, BlockedError, DeadlineError, Exchange, running
from scheduler.http.resolver import Lookups, Resolver, system_resolver
from scheduler.http.sockets import tls_context
from scheduler.webhook.addresses import TargetPolicy
from scheduler.webhook.attempt_log import storable
from scheduler.webhook.outcome import Answer, Failure, Stage
from scheduler.webhook.request import OutboundRequest
from scheduler.webhook.target import check_url

EXCERPT_BYTES = 1024
# Read on up to here so that the connection can be kept; what is longer costs its sender the connection.
DRAIN_BYTES = 64 * 1024
_POOLS, _CONNECTIONS_A_POOL = 40, 10
_DETAIL_CHARACTERS = 300


class Client:
    """Thread-safe; keep one for the life of the process, so that its connections stay warm."""

    def __init__(
        self,
        policy: TargetPolicy,
        *,
        ca_file: str | None = None,
        resolver: Resolver = system_resolver,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """`ca_file`: a PEM bundle in place of the public one; `idle_seconds`: how long a connection waits for reuse."""
        # urllib3's warnings carry tenants' URLs; every attempt has its own line elsewhere.
        logging.getLogger("urllib3").setLevel(logging.ERROR)
        self._policy = policy
        self._dialler = Dialler(policy, Lookups(resolver))
        self._adapter = _Adapter(policy, ca_file or certifi.where())
        self._idle_seconds = idle_seconds

    def post(self, request: OutboundRequest, *, deadline_seconds: float) -> Answer | Failure:
        """Sends the request once. The answer's body was whole, or longer than 64 KiB, within the deadline."""
        started = time.monotonic()
        exchange = Exchange(
            started=started, ends=started + deadline_seconds, dial=self._dialler.open, idle_seconds=self._idle_seconds
        )
        try:
            with running(exchange):
                return self._exchange(request, exchange)
        except Exception as error:
            # Wide on purpose: a receiver's bytes must not take its batch's neighbours. The stage says how far it came.
            return _failure(exchange, error)

    def close(self) -> None:
        """Closes the idle connections."""
        self._adapter.close()

    def _exchange(self, request: OutboundRequest, exchange: Exchange) -> Answer:
        raw = self._adapter.send(_prepare(request), stream=True).raw
        excerpt = _read(raw)
        exchange.left()
        return Answer(
            status=raw.status,
            headers=tuple((str(name), str(value)) for name, value in raw.headers.items()),
            body_excerpt=excerpt,
            timings=exchange.timings(),
        )


class _Adapter(HTTPAdapter):
    """The adapter without a session: a session would read a redirect's whole body, decompressed, and keep cookies."""

    def __init__(self, policy: TargetPolicy, ca_file: str) -> None:
        self._policy = policy
        self._ca_file = ca_file
        super().__init__(pool_connections=_POOLS, pool_maxsize=_CONNECTIONS_A_POOL, max_retries=0)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **pool_kwargs: Any) -> None:
        context = tls_context(self._ca_file)
        self.poolmanager = PoolManager(num_pools=connections, maxsize=maxsize, block=block, ssl_context=context)
        self.poolmanager.pool_classes_by_scheme = POOL_CLASSES

    def get_connection_with_tls_context(self, request: PreparedRequest, *_: Any, **__: Any) -> HTTPConnectionPool:
        # The parser that judged is the parser that names the peer.
        target = check_url(request.url or "", self._policy)
        pool: HTTPConnectionPool = self.poolmanager.connection_from_host(target.host, target.port, target.scheme)
        return pool

    def request_url(self, request: PreparedRequest, proxies: object) -> str:
        return check_url(request.url or "", self._policy).path

    def cert_verify(self, *_: Any, **__: Any) -> None:
        """Nothing: the one context verifies. The original loads the bundle again for each connection."""

    def build_response(self, req: PreparedRequest, resp: BaseHTTPResponse) -> Response:
        """The raw response alone: the original parses a stranger's cookies."""
        response = Response()
        response.raw = resp
        return response


def _prepare(request: OutboundRequest) -> PreparedRequest:
    """The request as it is: the usual preparation would rewrite the URL."""
    prepared = PreparedRequest()
    prepared.method = "POST"
    prepared.url = request.url
    prepared.headers = CaseInsensitiveDict(request.headers)
    prepared.headers["Content-Length"] = str(len(request.body))
    prepared.body = request.body
    return prepared


def _read(raw: BaseHTTPResponse) -> bytes:
    """The first KiB of the body, having read as far as is worth the connection."""
    if raw.status == HTTPStatus.SWITCHING_PROTOCOLS:
        raw.close()  # what follows is not HTTP
        return b""
    excerpt = read = raw.read(EXCERPT_BYTES, decode_content=False)
    total = len(read)
    while read and total < DRAIN_BYTES:
        read = raw.read(DRAIN_BYTES - total, decode_content=False)
        total += len(read)
    if read:
        raw.close()  # the unread rest would be taken for the next answer
    raw.release_conn()
    return excerpt


def _failure(exchange: Exchange, error: Exception) -> Failure:
    cause = _root(error)
    blocked = isinstance(cause, BlockedError | InvalidInput)
    return Failure(
        stage=Stage.BLOCKED if blocked else exchange.failed_at(),
        detail=_detail(cause),
        timings=exchange.timings(),
        reused=exchange.reused,
    )


def _root(error: BaseException) -> BaseException:
    """The error inside the libraries' wrappers, which repeat its text and the URL.

    Explicit causes and arguments only: an implicit context may be an error that the caller is busy with.
    """
    inner = next((each for each in (error.__cause__, *error.args) if isinstance(each, BaseException)), None)
    return error if inner is None else _root(inner)


def _detail(cause: BaseException) -> str:
    """A storable sentence: a receiver's own bytes may be part of it."""
    own = isinstance(cause, BlockedError | DeadlineError | InvalidInput)
    text = str(cause) if own else f"{type(cause).__name__}: {cause}"
    return storable(text[:_DETAIL_CHARACTERS].encode("utf-8", "replace"))
