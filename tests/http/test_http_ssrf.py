"""A tenant's URL reaches public addresses only, whatever the URL's spelling and whatever DNS says, and when."""

import socket
from collections.abc import Callable, Sequence

import pytest
from scheduler.http.client import Client
from scheduler.http.dialler import Dialler
from scheduler.http.exchange import BlockedError, Exchange
from scheduler.http.resolver import Lookups, system_resolver
from scheduler.webhook.outcome import Answer, Failure, Outcome, Stage, classify, stage_of

from tests.http.receiver import LOCAL, PUBLIC, Receiver, post_to, says

type MakeReceiver = Callable[..., Receiver]


def says_that_it_is(*addresses: str) -> Callable[[str, int], Sequence[str]]:
    return lambda host, port: addresses


def blocked(client: Client, url: str) -> Failure:
    result = client.post(post_to(url), deadline_seconds=5)
    assert isinstance(result, Failure), result
    assert result.stage is Stage.BLOCKED, result
    assert classify(result) is Outcome.RETRY
    return result


@pytest.mark.parametrize(
    "addresses",
    [
        pytest.param(("127.0.0.1",), id="sf-06: a wildcard name for loopback"),
        pytest.param(("93.184.216.34", "10.0.0.5"), id="sf-09: one private among public"),
        pytest.param(("10.0.0.5", "93.184.216.34"), id="sf-09: the other way round"),
        pytest.param(("169.254.169.254",), id="instance metadata"),
        pytest.param(("169.254.170.2",), id="container credentials"),
        pytest.param(("::ffff:169.254.169.254",), id="metadata mapped into IPv6"),
        pytest.param(("64:ff9b::a9fe:a9fe",), id="metadata behind NAT64"),
        pytest.param(("fd00:ec2::254",), id="metadata over IPv6"),
        pytest.param(("fe80::1%lo",), id="with a zone"),
        pytest.param(("0.0.0.0",), id="this host"),  # noqa: S104
        pytest.param(("not an address",), id="a resolver that talks nonsense"),
    ],
)
def test_one_bad_answer_refuses_the_name(addresses: tuple[str, ...]) -> None:
    result = blocked(Client(PUBLIC, resolver=says_that_it_is(*addresses)), "https://hook.example/")
    assert not any(address in result.detail for address in addresses)


def test_a_resolver_that_errs_or_says_nothing_is_a_refusal_and_temporary() -> None:
    """sf-02: no answer is never taken for a good one."""

    def errs(host: str, port: int) -> tuple[str, ...]:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    for resolver in (errs, says_that_it_is()):
        result = Client(PUBLIC, resolver=resolver).post(post_to("https://hook.example/"), deadline_seconds=5)
        assert isinstance(result, Failure)
        assert result.stage is Stage.DNS
        assert classify(result) is Outcome.RETRY


ODD_SPELLINGS = ["0x7f000001", "2130706433", "127.1", "017700000001", "0177.0.0.1", "0", "localhost"]


@pytest.mark.parametrize("host", ODD_SPELLINGS)
def test_odd_spellings_are_judged_by_what_they_resolve_to(host: str) -> None:
    """sf-05: the system's own resolver takes these for this machine; no list of texts can know them all."""
    dialler = Dialler(PUBLIC, Lookups(system_resolver))
    exchange = Exchange(started=0, ends=float("inf"), dial=dialler.open)
    with pytest.raises(BlockedError):
        dialler.open(host, 443, exchange)
    assert exchange.failed_at() is Stage.BLOCKED


@pytest.mark.parametrize("host", [*ODD_SPELLINGS, "LOCALHOST", "localhost."])
def test_odd_spellings_never_leave_the_client(host: str) -> None:
    """sf-05, sf-13."""
    blocked(Client(PUBLIC), f"https://{host}/")


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://169.254.169.254\\@public.example/", id="sf-08"),
        pytest.param("https://user:pw@h.example/", id="sf-11: userinfo"),
        pytest.param("ftp://h.example/", id="sf-11: ftp"),
        pytest.param("file:///etc/passwd", id="sf-11: file"),
        pytest.param("https://h.example:0/", id="sf-11: port 0"),
        pytest.param("https://h.example:99999/", id="sf-11: port 99999"),
        pytest.param("https://h.example:22/", id="sf-11: port 22"),
        pytest.param("http://[fe80::1%25lo]/", id="sf-11: zone"),
        pytest.param("http://①②⑦.⓪.⓪.①/", id="sf-13: circled digits"),
        pytest.param("http://127。0。0。1/", id="sf-13: ideographic dots"),
        pytest.param("http://h.example/", id="no TLS"),
    ],
)
def test_a_url_that_slipped_into_the_store_is_judged_again_before_any_look_up(url: str) -> None:
    def never(host: str, port: int) -> tuple[str, ...]:
        raise AssertionError("looked up")

    blocked(Client(PUBLIC, resolver=never), url)


def test_a_name_that_changes_its_mind_is_judged_by_the_answer_that_is_dialled(receiver: MakeReceiver) -> None:
    """One look-up a connection: there is no second answer between the judgement and the connect."""
    listening = receiver()
    answers = [("127.0.0.1",), ("169.254.169.254",), ("127.0.0.1",)]
    asked = []

    def rebinds(host: str, port: int) -> tuple[str, ...]:
        asked.append(host)
        return answers[len(asked) - 1]

    client = Client(LOCAL, resolver=rebinds, idle_seconds=0)
    url = listening.url(host="rebind.test")
    assert isinstance(client.post(post_to(url), deadline_seconds=5), Answer)
    assert len(asked) == 1
    blocked(client, url)
    assert isinstance(client.post(post_to(url), deadline_seconds=5), Answer)
    assert (len(asked), len(listening.requests)) == (3, 2)
    client.close()


def test_a_kept_connection_asks_dns_nothing(receiver: MakeReceiver) -> None:
    listening = receiver()
    answers = iter([("127.0.0.1",)])
    client = Client(LOCAL, resolver=lambda host, port: next(answers))
    for _ in range(3):
        assert isinstance(client.post(post_to(listening.url(host="hook.test")), deadline_seconds=5), Answer)
    client.close()


def test_a_redirect_to_an_inner_address_is_not_followed(client: Client, receiver: MakeReceiver) -> None:
    """sf-04."""
    location = b"http://169.254.169.254/latest/meta-data/"
    listening = receiver(says(b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % location))
    result = client.post(post_to(listening.url(host="hook.test")), deadline_seconds=5)
    assert isinstance(result, Answer)
    assert stage_of(result) is Stage.REDIRECT
    assert len(listening.requests) == 1


def test_local_targets_are_an_opt_in_and_even_then_metadata_is_refused() -> None:
    for address in ("169.254.169.254", "fd00:ec2::254", "fe80::1", "224.0.0.1"):
        blocked(Client(LOCAL, resolver=says_that_it_is(address)), "http://hook.test:8080/")
