"""Signatures are Standard Webhooks to the byte, whatever the body, and an independent verifier agrees."""

import json
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheduler.errors import InvalidInput
from scheduler.webhook.request import Delivery, build_request
from scheduler.webhook.signature import SigningSecret, sign
from standardwebhooks import Webhook, WebhookVerificationError

OLD = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
NEW = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8="
NEW_YEAR = 1798761600

VECTORS = [
    pytest.param([OLD], '{"n":"zażółć 🚀"}', "v1,PfZM51X+Vs55AUdlN1aL7PCE8aUfSNfG9GTT9TBQ5tk=", id="sg-05"),
    pytest.param(
        [OLD],
        json.dumps({"n": "zażółć 🚀"}, separators=(",", ":")),
        "v1,KTh4sajxcXC2pcXZ0BdQ1qMjgmPlRZHx53546cCHjU4=",
        id="sg-06",
    ),
    pytest.param([OLD], "", "v1,ywRQ9Oc41o2rT7bh8Td9oVDRT8iFmeF5sBwosHQ015s=", id="sg-08"),
    pytest.param(
        [NEW, OLD],
        '{"a":1}',
        "v1,gQKpBm/xbWBh0DSGTmhhw+XNo5BM63/HvqSMc5NHShE= v1,9QWPkmhMSHsyDSmLrbxeOCtRefwVjAnnztTv+DuN5/0=",
        id="sg-09",
    ),
]


@pytest.mark.parametrize(("secrets", "body", "expected"), VECTORS)
def test_a_signature_is_the_known_one(secrets: list[str], body: str, expected: str) -> None:
    parsed = [SigningSecret.parse(text) for text in secrets]
    assert sign(parsed, message_id="msg_0001", timestamp=NEW_YEAR, body=body.encode()) == expected


def test_the_specification_s_own_vector_holds() -> None:
    secret = SigningSecret.parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    signed = sign(
        [secret], message_id="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp=1614265330, body=b'{"test": 2432232314}'
    )
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def a_delivery(body: bytes) -> Delivery:
    return Delivery(
        schedule_id=UUID(int=1),
        run_id=UUID(int=2),
        scheduled_for=datetime(2027, 1, 1, tzinfo=UTC),
        attempt=1,
        url="https://hook.example/",
        body=body,
    )


@given(
    body=st.dictionaries(st.text(), st.text()),
    old=st.binary(min_size=24, max_size=64),
    new=st.binary(min_size=24, max_size=64),
)
def test_an_independent_verifier_accepts_each_secret_of_a_rotation(
    body: dict[str, str], old: bytes, new: bytes
) -> None:
    secrets = [SigningSecret(key=new), SigningSecret(key=old)]
    request = build_request(a_delivery(json.dumps(body).encode()), secrets=secrets, now=datetime.now(UTC))
    for secret in secrets:
        assert Webhook(secret.text).verify(request.body, dict(request.headers)) == body


def test_after_the_overlap_the_old_secret_verifies_nothing() -> None:
    request = build_request(a_delivery(b"{}"), secrets=[SigningSecret.parse(NEW)], now=datetime.now(UTC))
    assert Webhook(NEW).verify(request.body, dict(request.headers)) == {}
    with pytest.raises(WebhookVerificationError):
        Webhook(OLD).verify(request.body, dict(request.headers))


def test_an_instant_in_another_zone_signs_the_same_second() -> None:
    """sg-11: the timestamp is the instant, not the wall clock's digits."""
    tokyo = datetime(2027, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    requests = [
        build_request(a_delivery(b'{"a":1}'), secrets=[SigningSecret.parse(OLD)], now=now)
        for now in (tokyo, tokyo.astimezone(UTC))
    ]
    assert requests[0] == requests[1]
    assert dict(requests[0].headers)["webhook-timestamp"] == str(NEW_YEAR)


def test_a_naive_moment_is_refused() -> None:
    with pytest.raises(ValueError, match="naive"):
        build_request(a_delivery(b""), secrets=[SigningSecret.parse(OLD)], now=datetime(2027, 1, 1))  # noqa: DTZ001


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("v1," + OLD, id="sg-13"),
        pytest.param(OLD + "\n", id="sg-14: a trailing line feed"),
        pytest.param(OLD.removeprefix("whsec_"), id="sg-14: no prefix"),
        pytest.param("whsec_" + "_-" * 16, id="sg-14: the URL-safe alphabet"),
        pytest.param(OLD.rstrip("="), id="no padding"),
        pytest.param(OLD[:-2] + "9=", id="bits that the padding drops"),
        pytest.param("whsec_AAAA", id="too short"),
        pytest.param("whsec_" + "AAAA" * 22, id="too long"),
        pytest.param("WHSEC_" + OLD.removeprefix("whsec_"), id="another prefix"),
    ],
)
def test_a_text_that_another_verifier_might_read_as_another_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        SigningSecret.parse(text)
    assert caught.value.problems[0].pointer == "/secret"
    assert text.strip() not in str(caught.value)


@given(key=st.binary(min_size=24, max_size=64))
def test_a_secret_s_text_gives_back_its_key_and_its_repr_gives_nothing(key: bytes) -> None:
    secret = SigningSecret(key=key)
    assert SigningSecret.parse(secret.text) == secret
    assert repr(secret) == "SigningSecret()"


def test_nothing_is_signed_without_a_secret_or_with_an_ambiguous_id() -> None:
    with pytest.raises(ValueError, match="unsigned"):
        sign([], message_id="m", timestamp=0, body=b"")
    with pytest.raises(ValueError, match="dot"):
        sign([SigningSecret.parse(OLD)], message_id="m.1", timestamp=0, body=b"")
