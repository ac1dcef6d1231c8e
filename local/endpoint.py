"""The local AWS endpoint (MiniStack): one folder with its state, one loopback port, one process."""

import os
import shutil
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from local import children
from local.project import PROJECT, tool

REGION = "eu-west-1"
_STARTS_WITHIN_SECONDS = 60
# The key that the endpoint takes for the account's root. The functions have keys of their own, each for its role.
_ROOT = "test"


@dataclass(kw_only=True, slots=True)
class Endpoint:
    """What answers as AWS on http://127.0.0.1:`port`. Its state is written to `folder` when it is stopped."""

    folder: Path
    port: int
    _child: children.Child | None = field(default=None, repr=False)
    _clients: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "endpoint.log"

    def start(self) -> None:
        """Starts it over the state that an earlier stop left; TimeoutError or RuntimeError when it does not come up."""
        shutil.rmtree(self._temporary, ignore_errors=True)
        self._temporary.mkdir(parents=True)
        self._child = children.start(
            "the local AWS endpoint", [tool("ministack", "ministack")], environment=self._settings(), log=self.log
        )
        children.wait_until(self._answers, f"{self.url} to answer", seconds=_STARTS_WITHIN_SECONDS)

    def stop(self) -> None:
        """Stops it and every function's worker; the state is on disk afterwards."""
        while self._clients:
            self._clients.popitem()[1].close()
        if self._child is not None:
            self._child.stop()
            self._child = None
        shutil.rmtree(self._temporary, ignore_errors=True)

    def abandon(self) -> None:
        """Ends it without writing its state: the next start finds what the last stop left, and no half-made stack."""
        if self._child is not None:
            self._child.kill()
        self.stop()

    def client_environment(self) -> dict[str, str]:
        """The variables that make an AWS tool talk to this endpoint and to nothing else."""
        return {
            **clean_environment(),
            "AWS_ENDPOINT_URL": self.url,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": _ROOT,
            "AWS_SECRET_ACCESS_KEY": _ROOT,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def client(self, service: str) -> Any:
        """A boto3 client of this endpoint, closed when it stops."""
        if service not in self._clients:
            self._clients[service] = boto3.client(
                service,
                endpoint_url=self.url,
                region_name=REGION,
                aws_access_key_id=_ROOT,
                aws_secret_access_key=_ROOT,
                config=Config(read_timeout=300, retries={"total_max_attempts": 1}, proxies={}),
            )
        return self._clients[service]

    @property
    def _temporary(self) -> Path:
        return self.folder / "tmp"

    def _settings(self) -> dict[str, str]:
        return {
            **clean_environment(),
            "BIND_HOST": "127.0.0.1",
            "MINISTACK_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_REGION": REGION,
            "PERSIST_STATE": "1",
            "STATE_DIR": str(self.folder / "state"),
            "S3_PERSIST": "1",
            "S3_DATA_DIR": str(self.folder / "s3"),
            "TMPDIR": str(self._temporary),
            "AUTH": "true",  # the functions may do what their roles allow, and nothing else
            "CLOUDTRAIL_RECORDING": "1",
            "IOT_MTLS_ENABLED": "0",
            "SFTP_ENABLED": "0",
        }

    def _answers(self) -> bool:
        if self._child is not None and self._child.ended():
            raise RuntimeError(f"the local AWS endpoint did not start:\n{self._child.last_words()}")
        try:
            with urllib.request.urlopen(f"{self.url}/_ministack/ready", timeout=2) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except OSError:
            return False


def clean_environment() -> dict[str, str]:
    """Ours, without the caller's settings of AWS tools and Python; no proxy for this machine; our Python 3.13 first."""
    foreign = ("AWS_", "SAM_", "PYTHON", "VIRTUAL_ENV")
    ours = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    near = "127.0.0.1,localhost"
    path = f"{PROJECT / '.venv' / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**ours, "NO_PROXY": near, "no_proxy": near, "PATH": path}
