"""What import contracts cannot say: which files may import which libraries."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "fairlane"

VENDORS = {
    "asyncpg",
    "boto3",
    "botocore",
    "cryptography",
    "h11",
    "hiredis",
    "psycopg",
    "psycopg_pool",
    "pysqlite3",
    "redis",
    "sqlite3",
    "zstandard",
}


def imports(source: str) -> Iterator[str]:
    """Every module that a file imports, wherever in it: in functions and for type checking too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def offenders(files: Iterator[Path], *, allowed: set[str] | None = None) -> list[str]:
    """Imports of a vendor's library or, given `allowed`, of anything else."""
    found = []
    for file in files:
        for module in imports(file.read_text()):
            top = module.partition(".")[0]
            if (top in VENDORS) if allowed is None else (top not in allowed):
                found.append(f"{file.relative_to(PACKAGE)}: {module}")
    return found


def test_only_drivers_import_vendor_libraries() -> None:
    drivers = {*PACKAGE.glob("engines/*/**/driver*.py"), PACKAGE / "http_client.py"}
    assert offenders(file for file in PACKAGE.rglob("*.py") if file not in drivers) == []


def test_core_needs_only_the_standard_library_msgspec_and_cronsim() -> None:
    allowed = (set(sys.stdlib_module_names) - VENDORS) | {"msgspec", "cronsim", "fairlane"}
    assert offenders(PACKAGE.glob("core/**/*.py"), allowed=allowed) == []


def test_server_and_worker_import_no_engine() -> None:
    """They are given a store. Only direct imports: the client, below them, opens engines by URL."""
    files = [*PACKAGE.glob("server/**/*.py"), *PACKAGE.glob("worker/**/*.py")]
    modules = (module for file in files for module in imports(file.read_text()))
    assert [module for module in modules if module.startswith("fairlane.engines")] == []


def test_hidden_imports_are_seen() -> None:
    source = "def f():\n    import redis.asyncio\nif TYPE_CHECKING:\n    from psycopg import sql\n"
    assert set(imports(source)) == {"redis.asyncio", "psycopg", "psycopg.sql"}
