"""`sam build` and `sam deploy` of the project's template onto the local endpoint, skipped where nothing has changed."""

import fcntl
import hashlib
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from local import children, roles
from local.endpoint import REGION, Endpoint, clean_environment
from local.project import KEPT, PROJECT, tool

STACK = "carillon"
BUILD = PROJECT / ".aws-sam" / "build"
# What a build reads. Tests, documents and this package are not in it.
_SOURCES = ("template.yaml", "samconfig.toml", "functions", "layers", "shared")


def sources_digest() -> str:
    """Changes whenever a file does that `sam build` reads."""
    digest = hashlib.sha256()
    for path in sorted(_files()):
        digest.update(str(path.relative_to(PROJECT)).encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def build() -> str:
    """Brings `.aws-sam/build` up to date and returns the digest of what it was made from."""
    digest = sources_digest()
    stamp = BUILD.parent / "built-from"
    with _one_at_a_time():
        if not (BUILD / "template.yaml").exists() or not stamp.exists() or stamp.read_text() != digest:
            stamp.unlink(missing_ok=True)
            _sam("build", environment={}, words=[])
            stamp.write_text(digest)
    return digest


def deploy(endpoint: Endpoint, parameters: Mapping[str, str]) -> None:
    """Deploys what `build` left, with the `local` environment's parameters and these. RuntimeError says what failed."""
    overrides = [*local_parameters(), *(f"{name}={value}" for name, value in parameters.items())]
    with _one_at_a_time():
        _sam(
            "deploy",
            environment=endpoint.client_environment(),
            words=["--config-env", "local", "--stack-name", STACK, "--parameter-overrides", *overrides],
        )
    roles.allow_batches(endpoint)
    _give_gateway_responses(endpoint)


def _give_gateway_responses(endpoint: Endpoint) -> None:
    """What the API says by itself: AWS reads it out of the API's body, the local endpoint takes it by its own call alone."""
    cloudformation, gateway, deployed = (
        endpoint.client("cloudformation"),
        endpoint.client("apigateway"),
        outputs(endpoint),
    )
    template = cloudformation.get_template(StackName=STACK, TemplateStage="Processed")["TemplateBody"]
    body = template["Resources"]["Api"]["Properties"]["Body"]
    for kind, response in body["x-amazon-apigateway-gateway-responses"].items():
        gateway.put_gateway_response(restApiId=deployed["ApiId"], responseType=kind, **response)
    gateway.create_deployment(restApiId=deployed["ApiId"], stageName=deployed["ApiUrl"].rpartition("/")[2])


def outputs(endpoint: Endpoint) -> dict[str, str]:
    """The deployed stack's outputs; empty where there is no stack."""
    cloudformation = endpoint.client("cloudformation")
    try:
        stack = cloudformation.describe_stacks(StackName=STACK)["Stacks"][0]
    except cloudformation.exceptions.ClientError:
        return {}
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def local_parameters() -> list[str]:
    """What samconfig.toml relaxes for one machine; overrides on the command line would replace that whole list."""
    settings = tomllib.loads((PROJECT / "samconfig.toml").read_text())
    return list(settings["local"]["deploy"]["parameters"]["parameter_overrides"])


def _sam(command: str, *, environment: Mapping[str, str], words: list[str]) -> None:
    program: list[str | Path] = [tool("sam", "sam"), command, *words]
    with tempfile.TemporaryDirectory(
        prefix="carillon-sam-"
    ) as scratch:  # a build leaves a folder for each artefact there
        settings = {
            **clean_environment(),
            "SAM_CLI_TELEMETRY": "0",
            "AWS_DEFAULT_REGION": REGION,
            "TMPDIR": scratch,
            **environment,
        }
        children.run(f"sam {command}", program, environment=settings, folder=PROJECT, log=KEPT / f"sam-{command}.log")


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """The build folder is shared by every local stack of this checkout."""
    KEPT.mkdir(exist_ok=True)
    with (KEPT / "build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _files() -> Iterator[Path]:
    for name in _SOURCES:
        path = PROJECT / name
        yield from [path] if path.is_file() else (each for each in path.rglob("*") if _is_source(each))


def _is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
