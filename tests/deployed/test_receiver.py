"""The demo's receiver does what the contract asks of a tenant."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import requests
from standardwebhooks.webhooks import Webhook

from local.receiver import Receiver

_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
_BODY = '{"job": "billing"}'


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver(secret=_SECRET)
    receiver.start()
    yield receiver
    receiver.stop()


def _post(receiver: Receiver, key: str, *, secret: str = _SECRET, attempt: int = 1) -> int:
    now = datetime.now(UTC)
    headers = {
        "X-Idempotency-Key": key,
        "X-Attempt": str(attempt),
        "webhook-id": key,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign(key, now, _BODY),
    }
    return requests.post(receiver.url("/hook"), data=_BODY, headers=headers, timeout=10).status_code


def test_the_first_post_with_a_key_is_new_and_the_second_is_a_duplicate(receiver: Receiver) -> None:
    assert _post(receiver, "a") == 204
    assert _post(receiver, "a", attempt=2) == 204
    assert [(each.verified, each.duplicate, each.attempt) for each in receiver.received] == [
        (True, False, 1),
        (True, True, 2),
    ]


def test_a_signature_by_another_secret_is_refused_and_spends_no_key(receiver: Receiver) -> None:
    assert _post(receiver, "a", secret="whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA") == 401
    assert _post(receiver, "a") == 204
    assert [(each.verified, each.duplicate) for each in receiver.received] == [(False, False), (True, False)]


def test_a_held_post_gets_no_answer_and_spends_no_key(receiver: Receiver) -> None:
    receiver.hold_next("/hook")
    with pytest.raises(requests.ReadTimeout):
        requests.post(receiver.url("/hook"), data=_BODY, timeout=0.5)
    assert _post(receiver, "a") == 204
    assert not receiver.received[-1].duplicate
