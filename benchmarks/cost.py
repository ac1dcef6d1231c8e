"""What a million runs cost on AWS: `python -m benchmarks.cost [--answer-ms 200] [--batch 1]`.

Processor time, round trips, calls, events and bytes of log are measured: the real handlers run here for it, see
benchmarks.handlers. How long a round trip takes on AWS, and how fast a core there is, is said on the command line. Prices are
the public ones of eu-west-1, without free tiers, typed in November 2026 from the pages named beside them. The database, the
gateways and the tick are paid by the month, whatever is run: they are printed apart.
"""

import argparse
from dataclasses import dataclass
from decimal import Decimal

from benchmarks.handlers import Invocation, Measured, measure

MILLION = 1_000_000
# Dollars, by the page of aws.amazon.com that says so.
GIB_SECOND = Decimal("0.0000166667")  # AWS Lambda Pricing, x86
INVOCATION = Decimal("0.20") / MILLION  # AWS Lambda Pricing
SQS_REQUEST = Decimal("0.40") / MILLION  # Amazon SQS Pricing, standard queues
EVENT = Decimal("1.00") / MILLION  # Amazon EventBridge Pricing, custom events
KMS_REQUEST = Decimal("0.03") / 10_000  # AWS Key Management Service Pricing
KMS_KEY = Decimal("1.00")  # AWS Key Management Service Pricing, a month
LOG_GIB = Decimal("0.57")  # Amazon CloudWatch Pricing, logs collected
ALARM = Decimal("0.10")  # Amazon CloudWatch Pricing, a month
METRIC = Decimal("0.30")  # Amazon CloudWatch Pricing, a month
NAT_GIB = Decimal("0.048")  # Amazon VPC Pricing, NAT gateway
NAT_HOUR = Decimal("0.048")  # Amazon VPC Pricing, NAT gateway
ADDRESS_HOUR = Decimal("0.005")  # Amazon VPC Pricing, public IPv4 addresses
API_REQUEST = Decimal("3.50") / MILLION  # Amazon API Gateway Pricing, REST
HOURS = 730

MEMORY_MIB = 512
# AWS Lambda Developer Guide, "Configure Lambda function memory": 1,769 MB are one core.
CORE_MIB = 1_769
# A request and its answer through the gateway, TLS included: a small payload.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class There:
    """What AWS is beside this machine: a core's speed as a share of one here, and milliseconds of a round trip."""

    core: float = 1.0
    database_ms: float = 1.0
    call_ms: float = 10.0

    def billed_ms(self, done: Invocation) -> Decimal:
        """An invocation's duration, its wait for receivers apart: the memory's share of a core makes work so much longer."""
        work = done.cpu_ms / self.core * CORE_MIB / MEMORY_MIB
        return Decimal(work + done.database * self.database_ms + done.calls * self.call_ms)


def per_million_runs(load: Load, done: Measured, there: There) -> dict[str, Decimal]:
    """Dollars by what they are for. Each run is one attempt: a retry costs as much again."""
    invocations = Decimal(MILLION) / load.batch
    gib = Decimal(2**30)
    return {
        "Lambda, time": invocations * _time(there.billed_ms(done.delivery) + load.answer_ms),
        "Lambda, invocations": invocations * INVOCATION,
        # Sent by the planner, received and deleted by the mapping, all of them in batches.
        "SQS": 3 * invocations * SQS_REQUEST,
        "EventBridge": invocations * Decimal(done.delivery.events) * EVENT,
        "KMS": Decimal(MILLION) / RUNS_A_DECRYPTION * KMS_REQUEST,
        "Logs": invocations * Decimal(done.delivery.log_bytes) / gib * LOG_GIB,
        "NAT, bytes": MILLION * POST_BYTES / gib * NAT_GIB,
    }


def per_month(done: Measured, there: There, *, gateways: int) -> dict[str, Decimal]:
    """Dollars a month before the first run, without the database, whose price is its class's."""
    ticks = Decimal(HOURS * 60)
    return {
        "NAT gateways": gateways * HOURS * (NAT_HOUR + ADDRESS_HOUR),
        "Ticks": ticks * (INVOCATION + _time(there.billed_ms(done.tick))),
        "Ticks, logs": ticks * Decimal(done.tick.log_bytes) / Decimal(2**30) * LOG_GIB,
        # Two mappings, five pollers each, which wait 20 seconds for a message.
        "SQS, empty receives": HOURS * 3600 / Decimal(20) * 10 * SQS_REQUEST,
        "Metrics": FIGURES * METRIC,
        "Alarms": ALARMS * ALARM,
        "KMS key": KMS_KEY,
    }


def _time(milliseconds: Decimal) -> Decimal:
    return milliseconds / 1000 * MEMORY_MIB / 1024 * GIB_SECOND


def _print(title: str, parts: dict[str, Decimal]) -> None:
    print(title)  # noqa: T201
    for name, dollars in [*parts.items(), ("together", sum(parts.values(), Decimal(0)))]:
        print(f"  {name:<30}{dollars:>8.2f} $")  # noqa: T201


def _say(name: str, done: Invocation, there: There) -> None:
    print(  # noqa: T201
        f"{name}: {done.cpu_ms:.1f} ms of a core here, {done.database:.0f} round trips, {done.calls:.1f} calls, "
        f"{done.events:.0f} events, {done.log_bytes:.0f} bytes of log: "
        f"billed {there.billed_ms(done):.0f} ms and the receivers' time"
    )


def main() -> None:
    """Measures, and prints both tables for the load that the command line names."""
    words = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__.splitlines()[0])
    words.add_argument("--answer-ms", type=int, default=200, help="how long a receiver takes")
    words.add_argument("--batch", type=int, default=1, choices=range(1, 11), help="runs an invocation")
    words.add_argument("--gateways", type=int, default=1, choices=(1, 2))
    words.add_argument("--core", type=float, default=There().core, help="speed of a core of Lambda beside one here")
    words.add_argument("--database-ms", type=float, default=There().database_ms, help="a round trip to the database")
    words.add_argument("--call-ms", type=float, default=There().call_ms, help="a call of SQS, EventBridge or KMS")
    said = words.parse_args()
    load = Load(answer_ms=said.answer_ms, batch=said.batch)
    there = There(core=said.core, database_ms=said.database_ms, call_ms=said.call_ms)
    done = measure(load.batch)
    _say(f"a delivery of {load.batch}", done.delivery, there)
    _say("a tick of an idle system", done.tick, there)
    _print(
        f"a million runs, {load.batch} a batch, answered after {load.answer_ms} ms", per_million_runs(load, done, there)
    )
    _print("a month", per_month(done, there, gateways=said.gateways))
    print(f"a million requests to the API: {MILLION * API_REQUEST:.2f} $, and its function's time")  # noqa: T201


if __name__ == "__main__":
    main()
