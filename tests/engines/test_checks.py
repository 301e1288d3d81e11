"""Both databases refuse a row that no move could have made."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest

from fairlane import engines

WRONG = {
    "a level beyond the highest": ("content", "level", "11"),
    "returns below zero": ("content", "returns", "-1"),
    "no time at all": ("content", "timeout", "0"),
    "a unique key without states": ("content", "unique_key", "'x'"),
    "a waiting task that has ended": ("waiting", "state", "5"),
    "a retry that is never due": ("waiting", "state", "4"),
    "a queued task before its first version": ("ready", "version", "0"),
    "a held task without an attempt": ("held", "attempt", "0"),
    "a deadline before the start": ("held", "deadline", "1"),
    "an outcome that is no end": ("outcome", "state", "4"),
    "a result of a failure": ("outcome", "state", "6"),
    "a completion without a run": ("outcome", "attempt", "0"),
    "a run that was none": ("attempts", "attempt", "0"),
    "a slot of no run": ("lingering", "attempt", "-1"),
    "a task that waits for itself": ("bonds", "child", "parent"),
    "a document that was never written": ("documents", "version", "0"),
}

ROWS = """
INSERT INTO {0}content (
    task_id, {1} lane, level, created_at, run_at, ready_at, max_retries, payload)
VALUES ('{2}', {3} 1, 5, 1, 1, 1, 3, 'x');
INSERT INTO {0}waiting (task_id, {1} {4} attempt, retry_count, version, updated_at, state)
VALUES ('{2}', {3} {5} 0, 0, 1, 1, 1);
INSERT INTO {0}ready (
    task_id, {1} lane, level, ready_at, attempt, retry_count, version, updated_at)
VALUES ('{2}', {3} 1, 5, 1, 0, 0, 1, 1);
INSERT INTO {0}held (
    task_id, {1} {6} lane, level, ready_at, attempt, retry_count, version, worker_id, claimed_at)
VALUES ('{2}', {3} {7} 1, 5, 1, 1, 0, 2, 'w', 1);
INSERT INTO {0}outcome (
    task_id, {1} {8} attempt, retry_count, version, state, completed_at, result)
VALUES ('{2}', {3} {9} 1, 0, 2, 5, 1, 'x');
INSERT INTO {0}attempts (task_id, attempt, ended_at, outcome) VALUES ('{2}', 1, 1, 'failed');
INSERT INTO {0}lingering (worker_id, task_id, attempt, lane) VALUES ('w', '{2}', 1, 1);
INSERT INTO {0}documents (kind, id, value, at, version) VALUES ('token', 'a', 'x', 1, 1);
"""

PARENT, CHILD = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"


def test_sqlite_refuses(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with_schema(f"sqlite:///{path}")
    connection = sqlite3.connect(path)
    connection.executescript(
        ROWS.format("", "number,", PARENT, "1,", "", "", "", "", "", "")
        + f"INSERT INTO bonds VALUES ('{PARENT}', '{CHILD}', 0)"
    )
    for table, column, value in WRONG.values():
        with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            connection.execute(f"UPDATE {table} SET {column} = {value}")
    connection.close()


def test_postgres_refuses(postgres_url: str) -> None:
    with_schema(postgres_url)
    waiting, held = ("lane, level, ready_at,", "1, 5, 1,"), ("updated_at, linked,", "1, false,")
    outcome = ("lane, level,", "1, 5,")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        rows = ROWS.format("fairlane.", "", PARENT, "", *waiting, *held, *outcome)
        for statement in rows.split(";"):
            if statement.strip():
                connection.execute(statement.encode())
        bond = f"INSERT INTO fairlane.bonds VALUES ('{PARENT}', '{CHILD}', false, false)"
        connection.execute(bond.encode())
        for table, column, value in WRONG.values():
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute(f"UPDATE fairlane.{table} SET {column} = {value}".encode())


def with_schema(url: str) -> None:
    backend = engines.open(url)
    backend.run_sync(backend.ops.migrate())
    backend.driver.close()
