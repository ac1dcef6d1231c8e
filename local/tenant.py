"""A tenant as the API sees it: its key, and the requests that it sends."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import requests

from local.stack import Stack


class Refused(RuntimeError):
    """The API answered with a problem document."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Credentials:
    """What the admin function shows once."""

    tenant_id: str
    api_key: str
    signing_secret: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Tenant:
    """A client of the API at `api_url`, for one tenant."""

    api_url: str
    credentials: Credentials

    def create(self, **schedule: Any) -> dict[str, Any]:
        return self._call("POST", "/v1/schedules", schedule)

    def edit(self, schedule_id: str, **changes: Any) -> dict[str, Any]:
        return self._call("PATCH", f"/v1/schedules/{schedule_id}", changes)

    def schedules(self) -> list[dict[str, Any]]:
        return list(self._call("GET", "/v1/schedules")["schedules"])

    def runs(self, schedule_id: str) -> list[dict[str, Any]]:
        return list(self._call("GET", f"/v1/schedules/{schedule_id}/runs")["runs"])

    def run(self, run_id: str) -> dict[str, Any]:
        return self._call("GET", f"/v1/runs/{run_id}")

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.credentials.api_key}"}
        with requests.Session() as session:
            session.trust_env = False
            answer = session.request(method, self.api_url + path, json=body, headers=headers, timeout=30)
        if not answer.ok:
            raise Refused(f"{method} {path}: {answer.status_code} {answer.text}")
        return dict(answer.json())


def create(stack: Stack, name: str) -> Credentials:
    """A new tenant, made by the admin function."""
    made = stack.invoke("AdminFunctionName", {"action": "create_tenant", "name": name})
    return Credentials(**{field: made[field] for field in ("tenant_id", "api_key", "signing_secret")})


def kept(stack: Stack, name: str) -> Credentials:
    """The tenant that an earlier run made over the same data, or a new one."""
    path = _noted(stack.folder)
    if credentials := _read(path):
        try:
            Tenant(api_url=stack.api_url, credentials=credentials).schedules()
        except Refused:
            pass
        else:
            return credentials
    credentials = create(stack, name)
    path.touch(mode=0o600)
    path.write_text(json.dumps(asdict(credentials), indent=2) + "\n")
    return credentials


def last_secret(folder: Path) -> str:
    """The signing secret of the tenant that an earlier run made over `folder`; empty where there was none."""
    credentials = _read(_noted(folder))
    return credentials.signing_secret if credentials else ""


def _noted(folder: Path) -> Path:
    return folder / "aws" / "tenant.json"  # beside the key that its signing secret is encrypted under


def _read(path: Path) -> Credentials | None:
    return Credentials(**json.loads(path.read_text())) if path.exists() else None
