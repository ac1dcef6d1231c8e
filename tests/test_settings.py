"""Settings: read once, typed, and a bad variable is named."""

import pytest
from scheduler.errors import MisconfiguredError
from scheduler.settings import DatabaseAuth, Settings

GOOD = {
    "DATABASE_HOST": "db.example",
    "DATABASE_PORT": "5432",
    "DATABASE_NAME": "carillon",
    "DATABASE_USER": "carillon",
    "DATABASE_AUTH": "iam",
    "DATABASE_TLS": "verify",
    "QUEUE_URL": "https://sqs.example/1/runs",
    "DEAD_LETTER_QUEUE_URL": "https://sqs.example/1/dead",
    "SIGNING_KEY_ID": "key",
    "EVENT_BUS_NAME": "bus",
    "LEASE_SECONDS": "60",
    "DELIVERY_TIMEOUT_SECONDS": "30",
    "HTTP_DEADLINE_SECONDS": "15",
    "LOCAL_TARGETS": "off",
    "RETENTION_DAYS": "35",
    "TENANT_QUEUED": "100",
    "TENANT_CONCURRENCY": "10",
    "ENDPOINT_FAILING_DAYS": "5",
}


def test_good_variables_become_typed_settings() -> None:
    settings = Settings.from_environment(GOOD)
    assert settings.database_auth is DatabaseAuth.IAM
    assert settings.database_port == 5432
    assert settings.local_targets is False


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_missing_variable_is_named(name: str) -> None:
    with pytest.raises(MisconfiguredError, match=f"{name} is not set"):
        Settings.from_environment({**GOOD, name: ""})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_PORT", "0"),
        ("DATABASE_PORT", "٣"),
        ("DATABASE_TLS", "maybe"),
        ("LOCAL_TARGETS", "true"),
        ("HTTP_DEADLINE_SECONDS", "1.5"),
    ],
)
def test_a_wrong_value_is_named_with_what_it_may_be(name: str, value: str) -> None:
    with pytest.raises(MisconfiguredError, match=f"{name} must be"):
        Settings.from_environment({**GOOD, name: value})


@pytest.mark.parametrize(
    ("lease", "timeout", "deadline", "first", "second"),
    [
        pytest.param("20", "30", "15", "LEASE_SECONDS", "DELIVERY_TIMEOUT_SECONDS", id="le-08"),
        ("30", "30", "15", "LEASE_SECONDS", "DELIVERY_TIMEOUT_SECONDS"),
        ("60", "22", "15", "DELIVERY_TIMEOUT_SECONDS", "HTTP_DEADLINE_SECONDS"),
        ("60", "30", "60", "DELIVERY_TIMEOUT_SECONDS", "HTTP_DEADLINE_SECONDS"),
    ],
)
def test_a_lease_that_its_function_or_a_function_that_its_posts_can_outlive_is_refused(
    lease: str, timeout: str, deadline: str, first: str, second: str
) -> None:
    times = {"LEASE_SECONDS": lease, "DELIVERY_TIMEOUT_SECONDS": timeout, "HTTP_DEADLINE_SECONDS": deadline}
    with pytest.raises(MisconfiguredError, match=f"{first} .* must be more than {second}"):
        Settings.from_environment({**GOOD, **times})
