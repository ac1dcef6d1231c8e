"""The planner against one bare INSERT … SELECT of the same rows: `python -m benchmarks [schedules …]`."""

import resource
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from time import perf_counter
from uuid import uuid4

import pg8000.native
from scheduler.calendar.spec import cron
from scheduler.calendar.zones import tzdata_version
from scheduler.planning import plan
from scheduler.store.connection import Database, Transaction

from benchmarks import databases

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
# Every expression fires at 09:01 UTC in every zone that is whole hours from it; 25 times 40 distinct pairs.
_OFFSETS = [offset for offset in range(-12, 13) if offset]
_ZONES = ("UTC", *(f"Etc/GMT{offset:+d}" for offset in _OFFSETS))
_MINUTES = tuple(f"1,{minute} * * * *" for minute in range(10, 50))
_ROUNDS = 3
_LIMIT = 0.4
_MEMORY_MIB = 256


def main() -> int:
    """Prints one line a size; 1 where a ratio or the memory misses its limit."""
    sizes = [int(word) for word in sys.argv[1:]] or [100_000, 1_000_000]
    held = []
    with databases.serving({"max_wal_size": "8GB", "shared_buffers": "512MB"}) as server:
        for size in sizes:
            with databases.database(server, f"bench_{size}") as (database, admin):
                held.append(_measure(database, admin, size))
    return int(not all(held))


def _measure(database: Database, admin: pg8000.native.Connection, size: int) -> bool:
    _fill(database, admin, size)
    ratios, rates = [], []
    for _ in range(_ROUNDS):
        _rewind(admin)
        planned = _timed(lambda: _plan(database, size))
        admin.run("create unlogged table staged as select * from job_run")
        _rewind(admin)
        bare = _timed(lambda: admin.run("insert into job_run select * from staged"))
        admin.run("drop table staged")
        ratios.append(bare / planned)
        rates.append(size / planned)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    ratio = sorted(ratios)[_ROUNDS // 2]
    print(  # noqa: T201
        f"planner: schedules={size} calendars={len(_ZONES) * len(_MINUTES)} ratio={ratio:.2f} (at least {_LIMIT}) "
        f"runs_per_s={sorted(rates)[_ROUNDS // 2]:.0f} peak_mib={memory:.0f} (at most {_MEMORY_MIB})"
    )
    return ratio >= _LIMIT and memory <= _MEMORY_MIB


def _plan(database: Database, size: int) -> None:
    def clock(_: Transaction) -> datetime:
        return NOW

    done = plan(database, clock, retention=timedelta(days=30), more_time=lambda: True)
    if done.runs != size:
        raise SystemExit(f"planned {done.runs} runs instead of {size}")


def _timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def _rewind(admin: pg8000.native.Connection) -> None:
    """No runs, all calendars due again, and nothing of that left for the next measurement to write."""
    admin.run("truncate job_run")
    admin.run(
        "update calendar set planned_through = :now, next_fire_at = :due", now=NOW, due=NOW + timedelta(minutes=1)
    )
    admin.run("vacuum analyze calendar")
    admin.run("checkpoint")


def _fill(database: Database, admin: pg8000.native.Connection, size: int) -> None:
    specs = [cron(expression, zone) for zone in _ZONES for expression in _MINUTES]
    tenant = uuid4()
    with database.transaction() as transaction:
        transaction.run("tenants.insert", id=tenant, name="Bench", now=NOW)
        transaction.run("maintenance.make_partitions", first_day=NOW.date(), last_day=NOW.date())
    admin.run(
        """
        insert into calendar (kind, expression, timezone, gap, overlap, anchor, planned_through, next_fire_at,
                              tzdata_version)
        select 'cron', e, z, 'shift', 'first', 0, :now, :due, :version
        from unnest(cast(:expressions as text[]), cast(:zones as text[])) as c (e, z)
        """,
        expressions=[spec.expression for spec in specs],
        zones=[spec.timezone for spec in specs],
        now=NOW,
        due=NOW + timedelta(minutes=1),
        version=tzdata_version(),
    )
    admin.run(
        """
        insert into schedule (id, tenant_id, status, version, payload_version, timing, calendar_id, active_from,
                              misfire, misfire_grace_seconds, misfire_cap, url, headers, created_at, updated_at)
        select gen_random_uuid(), :tenant, 'active', 1, 1, '{}', c.ids[1 + i % cardinality(c.ids)], :now,
               'all', 60, 100, 'https://hook.example/', '{}', :now, :now
        from (select array_agg(id order by id) as ids from calendar) as c
        cross join generate_series(0, cast(:size as integer) - 1) as i
        """,
        tenant=tenant,
        now=NOW,
        size=size,
    )
    admin.run("vacuum analyze schedule")


if __name__ == "__main__":
    sys.exit(main())
