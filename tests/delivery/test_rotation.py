"""Rotation of signing secrets: while two overlap, every request carries a signature of each, the newest first."""

import os
from datetime import timedelta
from uuid import uuid4

from scheduler.aws.keys import Keys
from scheduler.signing_secrets import SigningSecrets
from standardwebhooks.webhooks import Webhook

from tests.depot import SECRET, Depot
from tests.http.receiver import Received, Receiver
from tests.world import T0


def rotate(depot: Depot, keys: Keys, overlap: timedelta) -> str:
    secrets = SigningSecrets(database=depot.world.database, clock=depot.world.clock)
    return secrets.rotate(depot.world.tenant_id, uuid4(), keys, overlap=overlap, entropy=os.urandom).text


def post(depot: Depot, receiver: Receiver) -> Received:
    depot.deliver(depot.one_run(receiver.url()))
    return receiver.requests[-1]


def signed_by(received: Received, secret: str) -> str:
    """What an independent library makes of this request with that secret."""
    at = T0.fromtimestamp(int(received.headers["webhook-timestamp"]), T0.tzinfo)
    return str(Webhook(secret).sign(received.headers["webhook-id"], at, received.body.decode()))


def test_both_secrets_sign_while_they_overlap_and_then_the_new_one_alone(depot: Depot, keys: Keys) -> None:
    with Receiver() as receiver:
        depot.world.clock.move(seconds=1)
        new = rotate(depot, keys, timedelta(hours=24))
        during = post(depot, receiver)
        depot.world.clock.move(hours=24)
        after = post(depot, receiver)
    assert during.headers["webhook-signature"].split(" ") == [signed_by(during, new), signed_by(during, SECRET)]
    assert after.headers["webhook-signature"] == signed_by(after, new)


def test_without_an_overlap_the_old_secret_signs_nothing_more(depot: Depot, keys: Keys) -> None:
    with Receiver() as receiver:
        depot.world.clock.move(seconds=1)
        new = rotate(depot, keys, timedelta(0))
        received = post(depot, receiver)
    assert received.headers["x-signature"] == signed_by(received, new)


def test_rotations_in_a_row_never_have_more_than_four_secrets_sign(depot: Depot, keys: Keys) -> None:
    with Receiver() as receiver:
        for _ in range(6):
            depot.world.clock.move(seconds=1)
            newest = rotate(depot, keys, timedelta(days=7))
        received = post(depot, receiver)
    signatures = received.headers["webhook-signature"].split(" ")
    assert len(signatures) == 4
    assert signatures[0] == signed_by(received, newest)


def test_a_request_under_way_while_the_secret_rotates_is_signed_by_what_its_claim_saw(depot: Depot, keys: Keys) -> None:
    """The claim reads the secrets: a rotation without overlap does not leave an attempt unsigned."""
    with Receiver() as receiver:
        run_id = depot.one_run(receiver.url())
        claimed = depot.claim(run_id)
        rotate(depot, keys, timedelta(0))
        assert [keys.decrypt(depot.world.tenant_id, each) for each in claimed.leases[0].secrets] == [SECRET]
