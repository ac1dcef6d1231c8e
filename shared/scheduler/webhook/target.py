"""Judges a tenant's URL before anything is stored, and takes it apart once for whoever connects.

The client dials the `Target` that this module returns, never a second parse of the text: two parsers that disagree
about `http://a\\@b/` are a way past every check.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address

from scheduler.errors import InvalidInput, Problem
from scheduler.webhook.addresses import TargetPolicy

MAX_URL_LENGTH = 2048
PUBLIC_PORTS = frozenset({443, 8443})
_DEFAULT_PORTS = {"https": 443, "http": 80}

# RFC 3986, without what a webhook has no use for: userinfo, fragment, IPvFuture, zone ids, an empty port.
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*)?"
    r"(?P<query>\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
# A last label that starts like this is a number to getaddrinfo (0x7f.1, 017700000001), whatever the rest says.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A judged URL in parts: `host` lower-case, without brackets or final dot; `path` with its query, as written."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """`scheme://host:port`, the port always written: what a circuit breaker or a pool is keyed by."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def check_url(url: str, policy: TargetPolicy, pointer: str = "/url") -> Target:
    """The target of this URL under this policy; InvalidInput, with a sentence a person can act on, for any other text.

    Names are not resolved here: addresses are judged at each connection, where DNS can no longer change its mind.
    """
    try:
        return _parse(url, policy)
    except _RefusedError as error:
        raise InvalidInput(Problem(pointer=pointer, detail=str(error))) from None


class _RefusedError(Exception):
    """The sentence that says why a URL can't be taken."""


def _parse(url: str, policy: TargetPolicy) -> Target:
    if len(url) > MAX_URL_LENGTH:
        raise _RefusedError(f"{len(url)} characters; at most {MAX_URL_LENGTH} are taken")
    match = _URL.fullmatch(url)
    if match is None:
        raise _RefusedError(_why_malformed(url))
    scheme = _scheme(match["scheme"].lower(), policy)
    port = _DEFAULT_PORTS[scheme] if match["port"] is None else int(match["port"])
    return Target(
        scheme=scheme,
        host=_host(match["host"].lower(), policy),
        port=_port(port, policy),
        path=(match["path"] or "/") + (match["query"] or ""),
    )


def _why_malformed(url: str) -> str:
    authority = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
    if not url.isascii():
        return "only ASCII is taken: write the host in its xn-- form and percent-encode the rest"
    if any(character <= " " or character in "\\\x7f" for character in url):
        return "spaces, control characters and backslashes are not taken: percent-encode them"
    if "@" in authority:
        return "a user name or password in the URL is not taken: use a header"
    if "#" in url:
        return "a fragment is never sent: leave it out"
    if "%" in authority:
        return "a percent sign or zone id in the host is not taken"
    return "must be an absolute URL as in RFC 3986, such as https://hooks.example.com/path"


def _scheme(scheme: str, policy: TargetPolicy) -> str:
    schemes = ("https", "http") if policy.local_targets else ("https",)
    if scheme not in schemes:
        raise _RefusedError(f"the scheme must be {' or '.join(schemes)}")
    return scheme


def _port(port: int, policy: TargetPolicy) -> int:
    if not 1 <= port <= 65535:
        raise _RefusedError("the port must be from 1 to 65535")
    if not policy.local_targets and port not in PUBLIC_PORTS:
        raise _RefusedError(f"the port must be {' or '.join(map(str, sorted(PUBLIC_PORTS)))}")
    return port


def _host(host: str, policy: TargetPolicy) -> str:
    if host.startswith("["):
        return _ipv6(host[1:-1], policy)
    name = host.removesuffix(".")
    labels = name.split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise _RefusedError(
            "the host is not a DNS name: labels of 1 to 63 letters, digits and hyphens, 253 characters at most"
        )
    if policy.local_targets:
        return name
    if _NUMBER.fullmatch(labels[-1]):
        raise _RefusedError("the host must be a name, not an IP address")
    if len(labels) == 1:
        raise _RefusedError("the host must be a full DNS name with a dot")
    return name


def _ipv6(text: str, policy: TargetPolicy) -> str:
    try:
        address = IPv6Address(text)
    except ValueError:
        raise _RefusedError("the host is not an IPv6 address") from None
    if not policy.local_targets:
        raise _RefusedError("the host must be a name, not an IP address")
    return str(address)
