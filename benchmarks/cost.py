"""What a million runs cost on AWS: `python -m benchmarks.cost [--answer-ms 200] [--batch 1]`.

Milliseconds are measured ones; requests are counted from the code; prices are the public ones of eu-west-1, without free tiers,
as of November 2026. The database, the gateways and the tick are paid by the month, whatever is run: they are printed apart.
"""

import argparse
from dataclasses import dataclass
from decimal import Decimal

MILLION = 1_000_000
# Dollars.
GIB_SECOND = Decimal("0.0000166667")
INVOCATION = Decimal("0.20") / MILLION
SQS_REQUEST = Decimal("0.40") / MILLION
EVENT = Decimal("1.00") / MILLION
KMS_REQUEST = Decimal("0.03") / 10_000
LOG_GIB = Decimal("0.57")
NAT_GIB = Decimal("0.048")
API_REQUEST = Decimal("3.50") / MILLION
NAT_HOUR = Decimal("0.048")
ADDRESS_HOUR = Decimal("0.005")
ALARM = Decimal("0.10")
METRIC = Decimal("0.30")
HOURS = 730

MEMORY_GIB = Decimal("0.5")
# A batch's own work besides the wait for receivers. Measured on two cores at 16 to 25 ms; 512 MB of Lambda is 0.29 of a core.
OWN_MS = 90
# A tick of an idle system, measured at 20 ms, and the like.
TICK_MS = 80
# Bytes of log lines and metrics of an attempt, and of a request and its answer through the gateway.
LOG_BYTES = 900
POST_BYTES = 4_000
# A decrypted secret is kept for five minutes in each of at most 20 sandboxes; one decryption for so many runs.
RUNS_A_DECRYPTION = 20
FIGURES = 30
ALARMS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """`batch`: runs that one invocation gets, from 1 where they trickle to 10 where they queue. `answer_ms`: a receiver's."""

    answer_ms: int
    batch: int


def per_million_runs(load: Load) -> dict[str, Decimal]:
    """Dollars by what they are for. Each run is one attempt: a retry costs as much again."""
    invocations = Decimal(MILLION) / load.batch
    seconds = invocations * (OWN_MS + load.answer_ms) / 1000
    gib = Decimal(2**30)
    return {
        "Lambda, time": seconds * MEMORY_GIB * GIB_SECOND,
        "Lambda, invocations": invocations * INVOCATION,
        # Sent, received and deleted in batches; the planner sends ten at a time.
        "SQS": (MILLION / Decimal(10) + 2 * invocations) * SQS_REQUEST,
        "EventBridge, one event a run": MILLION * EVENT,
        "KMS": Decimal(MILLION) / RUNS_A_DECRYPTION * KMS_REQUEST,
        "Logs": MILLION * LOG_BYTES / gib * LOG_GIB,
        "NAT, bytes": MILLION * POST_BYTES / gib * NAT_GIB,
    }


def per_month(*, gateways: int) -> dict[str, Decimal]:
    """Dollars a month before the first run, without the database, whose price is its class's."""
    ticks = Decimal(HOURS * 60)
    return {
        "NAT gateways": gateways * HOURS * (NAT_HOUR + ADDRESS_HOUR),
        "Ticks": ticks * (INVOCATION + TICK_MS * MEMORY_GIB * GIB_SECOND / 1000),
        # Two mappings, five pollers each, which wait 20 seconds for a message.
        "SQS, empty receives": HOURS * 3600 / Decimal(20) * 10 * SQS_REQUEST,
        "Metrics": FIGURES * METRIC,
        "Alarms": ALARMS * ALARM,
        "KMS key": Decimal(1),
    }


def _print(title: str, parts: dict[str, Decimal]) -> None:
    print(title)  # noqa: T201
    for name, dollars in [*parts.items(), ("together", sum(parts.values(), Decimal(0)))]:
        print(f"  {name:<30}{dollars:>8.2f} $")  # noqa: T201


def main() -> None:
    """Prints both tables for the load that the command line names."""
    words = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__.splitlines()[0])
    words.add_argument("--answer-ms", type=int, default=200)
    words.add_argument("--batch", type=int, default=1, choices=range(1, 11))
    words.add_argument("--gateways", type=int, default=1, choices=(1, 2))
    said = words.parse_args()
    load = Load(answer_ms=said.answer_ms, batch=said.batch)
    _print(f"a million runs, {load.batch} a batch, answered after {load.answer_ms} ms", per_million_runs(load))
    _print("a month", per_month(gateways=said.gateways))
    print(f"a million requests to the API: {MILLION * API_REQUEST:.2f} $, and its function's time")  # noqa: T201


if __name__ == "__main__":
    main()
