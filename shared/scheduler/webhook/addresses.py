"""Which IP addresses a delivery may connect to: the special-purpose ranges as data, and one judgement over them.

Sources: the IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890) and the RFCs named beside each range.
Python's `is_global` is not used: it calls NAT64, multicast and several later ranges global.
"""

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetPolicy:
    """Where deliveries may go.

    `local_targets` False, the only setting for AWS: https, ports 443 and 8443, public addresses. True is for a stack on
    one machine: http and any port too, and loopback and private addresses.
    """

    local_targets: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """One special-purpose block and what it is, with its RFC."""

    network: IPv4Network | IPv6Network
    name: str


def _ranges(*rows: tuple[str, str]) -> tuple[Range, ...]:
    return tuple(Range(network=ip_network(network), name=name) for network, name in rows)


LOCAL = _ranges(
    ("127.0.0.0/8", "loopback (RFC 1122)"),
    ("10.0.0.0/8", "private use (RFC 1918)"),
    ("172.16.0.0/12", "private use (RFC 1918)"),
    ("192.168.0.0/16", "private use (RFC 1918)"),
    ("::1/128", "loopback (RFC 4291)"),
    ("fc00::/7", "unique local (RFC 4193)"),
)

# Refused under every policy: even on one machine, nothing of a tenant's lives there.
NEVER = _ranges(
    ("0.0.0.0/8", "this network (RFC 791)"),
    ("100.64.0.0/10", "shared address space (RFC 6598)"),
    ("169.254.0.0/16", "link local, instance metadata (RFC 3927)"),
    ("192.0.0.0/24", "IETF protocol assignments (RFC 6890)"),
    ("192.0.2.0/24", "documentation (RFC 5737)"),
    ("192.31.196.0/24", "AS112 (RFC 7535)"),
    ("192.52.193.0/24", "multicast tunnelling (RFC 7450)"),
    ("192.88.99.0/24", "deprecated 6to4 relay (RFC 7526)"),
    ("192.175.48.0/24", "AS112 (RFC 7534)"),
    ("198.18.0.0/15", "benchmarking (RFC 2544)"),
    ("198.51.100.0/24", "documentation (RFC 5737)"),
    ("203.0.113.0/24", "documentation (RFC 5737)"),
    ("224.0.0.0/4", "multicast (RFC 5771)"),
    ("240.0.0.0/4", "reserved and broadcast (RFC 1112, RFC 919)"),
    ("::/128", "unspecified (RFC 4291)"),
    ("64:ff9b::/96", "NAT64 (RFC 6052)"),
    ("64:ff9b:1::/48", "local NAT64 (RFC 8215)"),
    ("100::/64", "discard only (RFC 6666)"),
    ("2001::/23", "IETF protocol assignments, Teredo (RFC 2928, RFC 4380)"),
    ("2001:db8::/32", "documentation (RFC 3849)"),
    ("2002::/16", "6to4 (RFC 3056)"),
    ("2620:4f:8000::/48", "AS112 (RFC 7534)"),
    ("3fff::/20", "documentation (RFC 9637)"),
    ("5f00::/16", "segment routing (RFC 9602)"),
    ("fd00:ec2::/32", "AWS instance services"),
    ("fe80::/10", "link local (RFC 4291)"),
    ("fec0::/10", "deprecated site local (RFC 3879)"),
    ("ff00::/8", "multicast (RFC 4291)"),
)

# All else in IPv6 is not assigned, or embeds an IPv4 address (::/96): only this block holds public hosts.
_GLOBAL_UNICAST = IPv6Network("2000::/3")


def address_allowed(address: str | IPv4Address | IPv6Address, policy: TargetPolicy) -> bool:
    """Whether a delivery may connect to this resolved address; a text that is no address is refused."""
    return refusal(address, policy) is None


def refusal(address: str | IPv4Address | IPv6Address, policy: TargetPolicy) -> str | None:
    """Why the address is refused, naming the range but never the address, or None where it is allowed.

    The address stays out of the text because tenants read it: it must not answer questions about an inner DNS.
    """
    try:
        judged = ip_address(address)
    except ValueError:
        return "not an IP address"
    if isinstance(judged, IPv6Address):
        if judged.scope_id is not None:
            return "an address with a zone (RFC 4007)"
        judged = judged.ipv4_mapped or judged
    return _judge(judged, policy)


def _judge(address: IPv4Address | IPv6Address, policy: TargetPolicy) -> str | None:
    if never := _find(address, NEVER):
        return never
    if local := _find(address, LOCAL):
        return None if policy.local_targets else local
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return "not global unicast (RFC 4291)"
    return None


def _find(address: IPv4Address | IPv6Address, ranges: tuple[Range, ...]) -> str | None:
    return next((row.name for row in ranges if address in row.network), None)
