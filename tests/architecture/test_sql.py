"""Every statement of every SQL file parses as it stands."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlane.engines.files import fill, part
from tools.check_sql import ENGINES, problems_of_postgres, problems_of_sqlite

Check = Callable[[Path], Iterator[str]]


@pytest.mark.parametrize(
    ("check", "engine"), [(problems_of_postgres, "postgres"), (problems_of_sqlite, "sqlite")]
)
def test_all_files_parse(check: Check, engine: str) -> None:
    assert list(check(ENGINES / engine)) == []


@pytest.mark.parametrize(
    ("check", "statement", "message"),
    [
        (problems_of_postgres, "SELECT FROM {table};", "syntax error"),
        (problems_of_postgres, "place.state = $1;", "syntax error"),
        (problems_of_postgres, "SELECT 1; SELECT 2;", "2 statements"),
        (problems_of_postgres, "", "0 statements"),
        (
            problems_of_postgres,
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELEC 1 $$;",
            "syntax error",
        ),
        (
            problems_of_postgres,
            "CREATE FUNCTION f() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN END $$;",
            "syntax error",
        ),
        (problems_of_sqlite, "SELECT FROM ready;", "syntax error"),
        (problems_of_sqlite, "SELECT 1; SELECT 2;", "one statement"),
        (problems_of_sqlite, "SELECT task FROM ready WHERE state = QUEUED;", "no such column"),
    ],
)
def test_a_broken_statement_is_found(
    tmp_path: Path, check: Check, statement: str, message: str
) -> None:
    _write(tmp_path, "schema/0001_initial.sql", "CREATE TABLE ready (task_id text, state int);")
    _write(tmp_path, "sql/good.sql", "-- name: first\nSELECT task_id FROM ready;\n")
    _write(tmp_path, "sql/bad.sql", f"-- name: fine\nSELECT 1;\n\n-- name: broken\n{statement}\n")
    (problem,) = check(tmp_path)
    assert problem.startswith(f"{tmp_path / 'sql/bad.sql'}: broken: ")
    assert message in problem


@pytest.mark.parametrize("check", [problems_of_postgres, problems_of_sqlite])
def test_a_broken_schema_is_found(tmp_path: Path, check: Check) -> None:
    _write(tmp_path, "schema/0001_initial.sql", "CREATE TABEL ready (task_id text);")
    (problem,) = check(tmp_path)
    assert problem.startswith(f"{tmp_path / 'schema/0001_initial.sql'}: ")


def _write(folder: Path, path: str, text: str) -> None:
    file = folder / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


MARKED = "SELECT a /* BEGIN b */, b /* END b */ FROM t /* TEMPLATE: c */"


def test_parts_are_kept_removed_or_replaced() -> None:
    assert part(MARKED, "b") == ", b"
    assert fill(MARKED, b="") == "SELECT a  FROM t /* TEMPLATE: c */"
    assert fill(MARKED, b=", d", c=r"WHERE \1") == r"SELECT a , d FROM t WHERE \1"


def test_a_part_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="no part d"):
        part(MARKED, "d")
    with pytest.raises(ValueError, match="no part d"):
        fill(MARKED, d="")
