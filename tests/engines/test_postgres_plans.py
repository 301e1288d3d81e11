"""Plans are made once and kept, whatever becomes of the tables: none may count on a small one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import psycopg
import pytest

from fairlane.core.filters import EVERYTHING, Filter, new_filter
from fairlane.core.flow import Op, perform
from fairlane.core.ids import new_id, new_ids
from fairlane.core.model import Ask, NewWorker, TaskError
from fairlane.core.outcomes import Completed, Failed
from fairlane.core.states import State
from fairlane.core.submission import new_task
from fairlane.engines.postgres.calls import Apart, Query, Script
from fairlane.engines.postgres.engine import PostgresOperations
from fairlane.engines.postgres.session import SESSION
from fairlane.engines.postgres.statements import load
from tests.fixtures.stores import settlement

# Tables that grow with the tasks there are. (Others are as short as what workers hold at a time.)
LARGE = {
    "attempts",
    "bonds",
    "content",
    "documents",
    "idempotency_keys",
    "journal",
    "outcome",
    "ready",
    "uniques",
    "waiting",
}

# Read from one end, and only as far as needed.
FROM_ONE_END = {"bonds_fresh", "ready_expiring", "waiting_expiring"}

STATEMENTS = {"SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "("}

SCAN = re.compile(r"(?:Seq Scan|Index (?:Only )?Scan(?: Backward)?(?: using (\w+))?) on (\w+)")

FILTERS = (
    EVERYTHING,
    *(new_filter(status=state) for state in State),
    new_filter(status=["queued", "failed", "retrying", "executing"], type="work", priority=5),
    new_filter(status=["queued", "failed"], tags={"a": "b"}),
    new_filter(worker="w"),
    Filter(since=1, until=2, workflow_id="w"),
    Filter(since=1, ended_before=2, schedule_id="s"),
)


class Session:
    """A session like those of the engine, that remembers what it was asked."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(
            url, autocommit=True, cursor_factory=psycopg.RawCursor[Any]
        )
        self.asked: dict[str, str] = {}
        self._verb = ""

    def set_up(self) -> None:
        self._call(Script(SESSION.format(pid=self._connection.info.backend_pid)))

    def run(self, op: Op[Any]) -> Any:
        self._verb = op.name
        return perform(op.flow(), self._call)

    def _call(self, request: Any) -> Any:
        if isinstance(request, Apart):
            return perform(request.flow(), self._call)
        if isinstance(request, Query):
            self.asked[request.sql] = self._verb
            cursor = self._connection.execute(request.sql, request.parameters, binary=True)
            return cursor.fetchall() if cursor.description else []
        if isinstance(request, Script):
            self._connection.execute(request.sql)
        return None

    def plan(self, sql: str) -> list[str]:
        """The one plan that is made for all values."""
        count = max((int(number) for number in re.findall(r"\$(\d+)", sql)), default=0)
        values = f"({', '.join(['NULL'] * count)})" if count else ""
        self._connection.execute(f"PREPARE asked AS {sql}")
        try:
            rows = self._connection.execute(f"EXPLAIN (COSTS OFF) EXECUTE asked{values}").fetchall()
        finally:
            self._connection.execute("DEALLOCATE asked")
        return [line for (line,) in rows]

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def session(postgres_url: str) -> Iterator[Session]:
    """On a store where everything was cleared away, and where that is known."""
    session = Session(postgres_url)
    session.run(PostgresOperations().migrate())
    session.set_up()
    yield session
    session.close()


def named_statements() -> Iterator[tuple[str, str]]:
    """Yield those that are sent as they stand in their files. (`exercise` has the others built.)"""
    for entry in files("fairlane.engines.postgres").joinpath("sql").iterdir():
        verb = entry.name.removesuffix(".sql")
        for name, sql in load(verb).items():
            if sql.split()[0] in STATEMENTS and "/* BEGIN" not in sql:
                yield f"{verb}.{name}", sql


def exercise(session: Session, ops: PostgresOperations) -> None:
    """Have those statements built that are not."""
    worker = new_id()
    session.run(ops.register(NewWorker(worker)))
    for filter in FILTERS:
        session.run(ops.submit([new_task("work")]))  # lanes have to be known
        # (From the newest, a list is read from the end of a table, down to a limit.)
        session.run(ops.find(filter, 10, "t" + "7" * 32))
    ids = new_ids(3)
    session.run(ops.submit([new_task("work", delay_seconds=5), new_task("work", priority=1)]))
    session.run(ops.submit([new_task("work", task_id=ids[0], unique=True)]))
    session.run(ops.submit([new_task("work", task_id=ids[1], depends_on=[ids[0]])]))
    session.run(ops.limit("limited", rate=10, concurrency=10))
    session.run(ops.submit([new_task("limited")]))
    outcomes = (Completed(b"1"), Failed(TaskError("x")))
    for number in range(30):
        grant = session.run(ops.claim(Ask(worker, f"r{number}", 2)))
        report = [settlement(task, outcomes[number % 2]) for task in grant.tasks]
        session.run(ops.settle(report))
    session.run(ops.cancel(ids))
    session.run(ops.delete(ids))


def careless(plan: list[str]) -> list[str]:
    """Steps of a plan that read a large table from end to end."""
    found = []
    for step, after in zip(plan, [*plan[1:], ""], strict=True):
        scan = SCAN.search(step)
        if scan and scan[2] in LARGE and scan[1] not in FROM_ONE_END:
            if not after.strip().startswith("Index Cond"):
                found.append(step.strip())
    return found


def test_no_plan_reads_a_large_table_from_end_to_end(session: Session, postgres_url: str) -> None:
    ops = PostgresOperations()
    exercise(session, ops)
    assert {"claim", "settle", "submit", "find", "cancel"} <= set(session.asked.values())
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        tables = ", ".join(
            f"fairlane.{table}" for table in sorted({*LARGE, "held", "workers", "lanes"})
        )
        owner.execute(f"TRUNCATE {tables}")
        owner.execute("VACUUM ANALYZE")
    statements = dict(named_statements())
    for sql, verb in session.asked.items():
        if sql.split()[0] in STATEMENTS:
            statements.setdefault(f"{verb} {sql}", sql)
    found = {name: careless(session.plan(sql)) for name, sql in statements.items()}
    assert {name: steps for name, steps in found.items() if steps} == {}
