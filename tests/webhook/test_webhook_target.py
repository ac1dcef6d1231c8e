"""URLs, addresses and tenant headers: what is taken, what is refused, and the sentence that says why."""

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler.errors import InvalidInput
from scheduler.webhook.addresses import LOCAL, NEVER, TargetPolicy, address_allowed
from scheduler.webhook.headers import check_headers
from scheduler.webhook.target import Target, check_url

PUBLIC = TargetPolicy(local_targets=False)
ON_ONE_MACHINE = TargetPolicy(local_targets=True)


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "origin"),
    [
        ("https://hook.example", "hook.example", 443, "/", "https://hook.example:443"),
        (
            "HTTPS://Hook.Example./a/../b//?q=%C3%a9&r=/?",
            "hook.example",
            443,
            "/a/../b//?q=%C3%a9&r=/?",
            "https://hook.example:443",
        ),
        ("https://hook.example:8443?x", "hook.example", 8443, "/?x", "https://hook.example:8443"),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443, "/", "https://xn--bcher-kva.example:443"),
        ("https://my_bucket.s3.example/", "my_bucket.s3.example", 443, "/", "https://my_bucket.s3.example:443"),
    ],
)
def test_a_public_https_url_is_taken_apart_once(url: str, host: str, port: int, path: str, origin: str) -> None:
    target = check_url(url, PUBLIC)
    assert target == Target(scheme="https", host=host, port=port, path=path)
    assert target.origin == origin


REFUSED = [
    pytest.param("http://hook.example/", "scheme", id="no TLS"),
    pytest.param("ftp://h.example/", "scheme", id="sf-11: ftp"),
    pytest.param("file:///etc/passwd", "absolute", id="sf-11: file"),
    pytest.param("https://user:pw@h.example/", "user name", id="sf-11: userinfo"),
    pytest.param("https://h.example:0/", "port", id="sf-11: port 0"),
    pytest.param("https://h.example:99999/", "port", id="sf-11: port 99999"),
    pytest.param("https://h.example:22/", "port", id="sf-11: port 22"),
    pytest.param("http://[fe80::1%25lo]/", "zone", id="sf-11: zone"),
    pytest.param("https://h.example:/", "absolute", id="an empty port"),
    pytest.param("http://169.254.169.254\\@public.example/", "backslash", id="sf-08"),
    pytest.param("https://h.example/a b", "spaces", id="a space"),
    pytest.param("https://h.example/\r\nX-Evil: 1", "control", id="a header in the path"),
    pytest.param("https://h.example/\x00", "control", id="NUL"),
    pytest.param("https://h.example/\x7f", "control", id="DEL"),
    pytest.param("https://h.example/#x", "fragment", id="a fragment"),
    pytest.param("https://h.example/%zz", "absolute", id="half an escape"),
    pytest.param("https://①②⑦.⓪.⓪.①/", "ASCII", id="sf-13: circled digits"),
    pytest.param("https://127。0。0。1/", "ASCII", id="sf-13: ideographic dots"),
    pytest.param("https://LOCALHOST/", "dot", id="sf-13: localhost"),
    pytest.param("https://localhost./", "dot", id="sf-13: localhost with a dot"),
    pytest.param("https://93.184.216.34/", "not an IP address", id="an address"),
    pytest.param("https://[2606:2800:220:1::1]/", "not an IP address", id="an IPv6 address"),
    pytest.param("https://[::::]/", "IPv6", id="no IPv6 address"),
    pytest.param("https://a..example/", "DNS name", id="an empty label"),
    pytest.param("https://-a.example/", "DNS name", id="a hyphen first"),
    pytest.param(f"https://{'a' * 64}.example/", "DNS name", id="a long label"),
    pytest.param(f"https://{'a.' * 127}example/", "DNS name", id="a long name"),
    pytest.param(f"https://h.example/{'a' * 2048}", "2048", id="a long URL"),
    pytest.param("//h.example/", "absolute", id="no scheme"),
    pytest.param("", "absolute", id="empty"),
    *[
        pytest.param(f"https://{host}/", "IP address", id=f"sf-05: {host}")
        for host in ("0x7f000001", "2130706433", "127.1", "017700000001", "0177.0.0.1", "0", "1.0x7f")
    ],
]


@pytest.mark.parametrize(("url", "word"), REFUSED)
def test_any_other_url_is_refused_with_its_reason(url: str, word: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_url(url, PUBLIC)
    (problem,) = caught.value.problems
    assert problem.pointer == "/url"
    assert word in problem.detail


@given(url=st.one_of(st.text(), st.text().map("https://{}".format), st.from_regex(r"https?://[\w.@:\\\[\]%#/?-]*")))
def test_a_url_is_taken_or_refused_and_what_is_taken_is_plain(url: str) -> None:
    for policy in (PUBLIC, ON_ONE_MACHINE):
        try:
            target = check_url(url, policy)
        except InvalidInput:
            continue
        assert target.path.isascii()
        assert target.path.startswith("/")
        assert not set(target.host) & set("@\\/?#% ")
        assert check_url(target.origin + target.path, policy) == target


def test_on_one_machine_http_any_port_and_addresses_are_taken() -> None:
    for url in ("http://localhost:8000/", "http://127.0.0.1:9/", "http://[::1]:1/", "https://hook.test:65535/"):
        check_url(url, ON_ONE_MACHINE)
    assert check_url("http://[0:0::1]:1/", ON_ONE_MACHINE).origin == "http://[::1]:1"


@pytest.mark.parametrize("row", [*NEVER, *LOCAL], ids=lambda row: str(row.network))
def test_both_ends_of_every_special_range_are_refused(row: object) -> None:
    for address in (row.network[0], row.network[-1]):  # type: ignore[attr-defined]
        assert not address_allowed(address, PUBLIC)
        assert not address_allowed(str(address), PUBLIC)


@pytest.mark.parametrize("row", NEVER, ids=lambda row: str(row.network))
def test_on_one_machine_only_loopback_and_private_ranges_open(row: object) -> None:
    assert not address_allowed(row.network[0], ON_ONE_MACHINE)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "address",
    [
        "::7f00:1",
        "::ffff:127.0.0.1",
        "::ffff:10.1.2.3",
        "64:ff9b::a9fe:a9fe",
        "fe80::1%eth0",
        "4000::1",
        "",
        "1.1.1.1.1",
    ],
)
def test_embedded_zoned_unassigned_and_malformed_addresses_are_refused(address: str) -> None:
    assert not address_allowed(address, PUBLIC)


@pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "::ffff:8.8.8.8", "2606:4700::1111", "2a00:1450::1"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert address_allowed(address, PUBLIC)
    assert address_allowed(ip_address(address), PUBLIC)


def test_tenant_headers_keep_their_order_and_spelling() -> None:
    given_headers = {"X-Api-Version": "2", "authorization": "Bearer a b", "X-Empty": ""}
    assert check_headers(given_headers) == tuple(given_headers.items())


@pytest.mark.parametrize(
    ("headers", "pointer", "word"),
    [
        pytest.param({"X-Name": "Żółć"}, "/headers/X-Name", "ASCII", id="wh-02"),
        pytest.param({"X-Name": "a\r\nX-Evil: 1"}, "/headers/X-Name", "ASCII", id="a line break"),
        pytest.param({"X-Name": " a"}, "/headers/X-Name", "inside", id="a leading space"),
        pytest.param({"X-Name": 1}, "/headers/X-Name", "string", id="a number"),
        pytest.param({"X~/Name": "1", "X Name": "1"}, "/headers/X~0~1Name", "token", id="no token"),
        pytest.param({"\ud800": "1"}, "/headers/?", "token", id="a lone surrogate"),
        pytest.param({"Host": "a"}, "/headers/Host", "reserved", id="the connection's"),
        pytest.param({"X-SIGNATURE": "a"}, "/headers/X-SIGNATURE", "reserved", id="ours"),
        pytest.param({"Webhook-Other": "a"}, "/headers/Webhook-Other", "reserved", id="the standard's"),
        pytest.param({"X-A": "1", "x-a": "2"}, "/headers/x-a", "twice", id="twice"),
        pytest.param({f"X-{n}": "1" for n in range(21)}, "/headers", "20", id="too many"),
        pytest.param({"X-A": "1" * 5000}, "/headers", "4096", id="too long"),
    ],
)
def test_a_header_that_would_break_the_request_is_refused(headers: dict[str, object], pointer: str, word: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_headers(headers)
    assert caught.value.problems[0].pointer == pointer
    assert word in caught.value.problems[0].detail
