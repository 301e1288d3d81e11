"""Parse every SQL file of the engines: part of `make check`.

PostgreSQL's files are parsed by PostgreSQL's own grammar, functions included. SQLite has no parser
apart from its database, so its schema is created in memory and each statement compiled against it.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from pglast import ast, parse_plpgsql, parse_sql
from pglast.parser import ParseError

from fairlane.engines.files import split, with_numbers

ENGINES: Final = Path(__file__).parents[1] / "src" / "fairlane" / "engines"


def problems_of_postgres(engine: Path) -> Iterator[str]:
    """Yield what is wrong with the SQL files of an engine on PostgreSQL."""
    for file in sorted(engine.glob("schema/*.sql")):
        try:
            _parse(file.read_text(encoding="utf-8"))
        except ParseError as error:
            yield f"{file}: {error}"
    for file, name, sql in _named(engine):
        try:
            found = _parse(sql)
        except ParseError as error:
            yield f"{file}: {name}: {error}"
        else:
            if found != 1:
                yield f"{file}: {name}: {found} statements instead of one"


def _parse(sql: str) -> int:
    """Parse statements and the functions that they create. Return how many statements there are."""
    statements = [raw.stmt for raw in parse_sql(sql)]
    for statement in statements:
        if isinstance(statement, ast.CreateFunctionStmt):
            options = {option.defname: option.arg for option in statement.options or ()}
            if options["language"].sval == "plpgsql":
                parse_plpgsql(sql)
            else:
                parse_sql(options["as"][0].sval)
    return len(statements)


def problems_of_sqlite(engine: Path) -> Iterator[str]:
    """Yield what is wrong with the SQL files of an engine on SQLite."""
    with closing(sqlite3.connect(":memory:")) as database:
        for file in sorted(engine.glob("schema/*.sql")):
            try:
                database.executescript(file.read_text(encoding="utf-8"))
            except sqlite3.Error as error:
                yield f"{file}: {error}"
        for file, name, sql in _named(engine):
            sql = with_numbers(sql)
            try:
                database.execute(f"EXPLAIN {sql}", [None] * _parameters(sql))
            except (sqlite3.Error, sqlite3.Warning) as error:
                yield f"{file}: {name}: {error}"


def _parameters(sql: str) -> int:
    """Return how many parameters a statement has, numbered or not."""
    numbers = [int(number) for number in re.findall(r"\?(\d+)", sql)]
    return max(numbers, default=sql.count("?"))


def _named(engine: Path) -> Iterator[tuple[Path, str, str]]:
    for file in sorted(engine.glob("sql/*.sql")):
        for name, sql in split(file.read_text(encoding="utf-8")).items():
            yield file, name, sql


def main() -> None:
    problems = [
        *problems_of_postgres(ENGINES / "postgres"),
        *problems_of_sqlite(ENGINES / "sqlite"),
    ]
    for problem in problems:
        print(problem)
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
