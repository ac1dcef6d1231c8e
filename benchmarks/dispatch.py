"""A look at what is due, beside backlogs of two sizes: `python -m benchmarks.dispatch [runs]`.

One tenant has the backlog, a hundred others have ten due runs each. What a look costs must not grow with what waits behind it.
"""

import sys
from datetime import UTC, datetime, timedelta
from time import perf_counter
from uuid import UUID, uuid4

import pg8000.native
from scheduler.look_ahead import LOOK_AHEAD
from scheduler.store.connection import Database

from benchmarks import databases

NOW = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
_SMALL = 1_000
_LARGE = 1_000_000
_TENANTS = 100
_RUNS_EACH = 10
_ROUNDS = 7
_LIMIT = 2.0


def main() -> int:
    """Prints one line; 1 where the ratio misses its limit."""
    large = int(sys.argv[1]) if sys.argv[1:] else _LARGE
    with (
        databases.serving({"max_wal_size": "8GB"}) as server,
        databases.database(server, "bench_dispatch") as (database, admin),
    ):
        return int(not _measure(database, admin, large))


def _measure(database: Database, admin: pg8000.native.Connection, large: int) -> bool:
    long, *others = _tenants(database, admin)
    for schedule_id in others:
        _backlog(admin, schedule_id, 0, _RUNS_EACH)
    _backlog(admin, long, 0, _SMALL)
    beside_small = _look(database)
    _backlog(admin, long, _SMALL, large)
    beside_large = _look(database)
    ratio = beside_large / beside_small
    print(  # noqa: T201
        f"dispatch: a look beside {_SMALL} waiting runs {beside_small * 1000:.0f} ms, beside {large} "
        f"{beside_large * 1000:.0f} ms, ratio={ratio:.2f} (at most {_LIMIT})"
    )
    return ratio <= _LIMIT


def _tenants(database: Database, admin: pg8000.native.Connection) -> list[UUID]:
    """A schedule each, of the tenant with the backlog first."""
    with database.transaction() as transaction:
        first, last = (NOW - timedelta(days=30)).date(), (NOW + timedelta(days=62)).date()
        transaction.run("maintenance.make_partitions", first_day=first, last_day=last)
    admin.run(
        """
        insert into calendar (kind, expression, timezone, gap, overlap, anchor, planned_through, tzdata_version)
        values ('cron', '0 0 1 1 *', 'UTC', 'shift', 'first', 0, :now, 'bench')
        """,
        now=NOW,
    )
    schedules = [uuid4() for _ in range(1 + _TENANTS)]
    admin.run(
        """
        with made as (
            insert into tenant (id, name, status, created_at)
            select t.id, 'Bench', 'active', :now from unnest(cast(:ids as uuid[])) as t (id)
            returning id
        )
        insert into schedule (id, tenant_id, status, version, payload_version, timing, calendar_id, active_from,
                              misfire, misfire_grace_seconds, misfire_cap, url, headers, created_at, updated_at)
        select made.id, made.id, 'active', 1, 1, '{}', (select c.id from calendar as c), :now,
               'all', 60, 100, 'https://hook.example/', '{}', :now, :now
        from made
        """,
        ids=schedules,
        now=NOW,
    )
    return schedules


def _backlog(admin: pg8000.native.Connection, schedule_id: UUID, already: int, count: int) -> None:
    """Makes its due runs `count`, a second apart; there are `already` so many."""
    admin.run(
        """
        insert into job_run (id, schedule_id, scheduled_for, tenant_id, state, due_at, next_attempt_at,
                             schedule_version, tzdata_version, trigger, created_at)
        select cast(substr(o.digits, 1, 8) || '-' || substr(o.digits, 9) || '-7' || substr(cast(s.id as text), 16) as uuid),
               s.id, o.at, s.tenant_id, 'planned', o.at, o.at, 1, 'bench', 'schedule', o.at
        from schedule as s
        cross join (
            select t.at, lpad(to_hex(cast(extract(epoch from t.at) * 1000 as bigint)), 12, '0') as digits
            from (
                select cast(:now as timestamptz) - make_interval(secs => 1 + back) as at
                from generate_series(cast(:already as integer), cast(:count as integer) - 1) as back
            ) as t
        ) as o
        where s.id = :id
        """,
        now=NOW,
        already=already,
        count=count,
        id=schedule_id,
    )
    admin.run("vacuum analyze job_run")


def _look(database: Database) -> float:
    """Seconds of a look, the best of some."""
    times = []
    for _ in range(_ROUNDS):
        with database.transaction() as transaction:
            begun = perf_counter()
            rows = transaction.run(
                "dispatch.find_planned",
                now=NOW,
                horizon=NOW + LOOK_AHEAD,
                schedule_id=None,
                tenant_queued=100,
                tenant_concurrency=10,
                most=100_000,
            )
            times.append(perf_counter() - begun)
        # All of the others' runs, and of the backlog what its tenant may have and one more.
        if len(rows) != _TENANTS * _RUNS_EACH + 101:
            raise SystemExit(f"a look found {len(rows)} runs")
    return min(times)


if __name__ == "__main__":
    sys.exit(main())
