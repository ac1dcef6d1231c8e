"""Tenants: made with a key and a secret that are shown once, found again by the key alone."""

import os
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from scheduler.aws.keys import Keys
from scheduler.errors import InvalidInput, NotFound
from scheduler.signing_secrets import SigningSecrets
from scheduler.tenants import NewTenant, create_tenant, find_key

from tests.world import World


@pytest.fixture
def make(world: World, keys: Keys) -> Callable[[object], NewTenant]:
    return lambda name: create_tenant(world.database, world.clock, keys, name, new_id=uuid4, entropy=os.urandom)


def test_a_tenants_key_finds_it_and_any_other_text_does_not(world: World, make: Callable[[object], NewTenant]) -> None:
    made = make("Acme")
    found = find_key(world.database, world.clock, made.api_key)
    assert found is not None
    assert found.tenant_id == made.tenant_id
    for text in (made.api_key[:-1], made.api_key + " ", "", "\ud800", "\x00"):
        assert find_key(world.database, world.clock, text) is None


@pytest.mark.parametrize(
    "end",
    [
        "update api_key set revoked_at = created_at",
        "update api_key set expires_at = created_at",
        "update tenant set status = 'suspended'",
    ],
)
def test_a_key_that_is_revoked_or_expired_or_whose_tenant_is_suspended_is_none(
    world: World, make: Callable[[object], NewTenant], end: str
) -> None:
    made = make("Acme")
    world.sql(end)
    assert find_key(world.database, world.clock, made.api_key) is None


def test_neither_key_nor_secret_is_stored_or_shown_in_a_log(
    world: World, make: Callable[[object], NewTenant], keys: Keys
) -> None:
    made = make("Acme")
    stored = str(world.sql("select * from api_key")) + str(world.sql("select * from signing_secret"))
    for text in (made.api_key, made.signing_secret, made.signing_secret.removeprefix("whsec_")):
        assert text not in stored
        assert text not in repr(made)
    [[ciphertext]] = world.sql("select ciphertext from signing_secret where tenant_id = :id", id=made.tenant_id)
    assert keys.decrypt(made.tenant_id, ciphertext) == made.signing_secret


@pytest.mark.parametrize("name", [None, 7, "", "x" * 201, "a\x00b", "\ud800", ["a"]])
def test_a_name_that_can_not_be_taken_is_refused_and_nothing_is_stored(
    world: World, make: Callable[[object], NewTenant], name: object
) -> None:
    with pytest.raises(InvalidInput, match="/name"):
        make(name)
    assert world.sql("select count(*) from tenant") == [[1]]


@pytest.mark.parametrize("overlap", [timedelta(seconds=-1), timedelta(days=7, seconds=1)])
def test_an_overlap_is_none_to_seven_days(world: World, keys: Keys, overlap: timedelta) -> None:
    with pytest.raises(InvalidInput, match="/overlap_seconds"):
        rotate(world, keys, overlap=overlap)


def test_an_unknown_tenant_has_no_secret_to_rotate(world: World, keys: Keys) -> None:
    with pytest.raises(NotFound):
        rotate(world, keys, tenant_id=uuid4())


def test_a_rotated_secret_is_neither_stored_nor_is_the_old_one_dropped_before_its_overlap(
    world: World, keys: Keys, make: Callable[[object], NewTenant]
) -> None:
    made = make("Acme")
    secret = rotate(world, keys, tenant_id=made.tenant_id)
    rows = world.sql(
        "select ciphertext, expires_at from signing_secret where tenant_id = :id order by expires_at", id=made.tenant_id
    )
    assert [keys.decrypt(made.tenant_id, row[0]) for row in rows] == [made.signing_secret, secret]
    assert [row[1] for row in rows] == [world.clock.now + timedelta(hours=24), None]
    assert secret not in str(rows)


def rotate(world: World, keys: Keys, *, tenant_id: UUID | None = None, **words: timedelta) -> str:
    secrets = SigningSecrets(database=world.database, clock=world.clock)
    return secrets.rotate(tenant_id or world.tenant_id, uuid4(), keys, entropy=os.urandom, **words).text
