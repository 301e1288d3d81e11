"""The tables of extras name each extra of the package, and the package needs none of them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fairlane.core.extras import EXTRA_OF

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
LIBRARIES = {
    "compression": ["zstandard"],
    "encryption": ["cryptography"],
    "otel": ["opentelemetry"],
    "postgres": ["psycopg", "asyncpg"],
    "redis": ["redis"],
    "s3": ["boto3"],
    "server": ["uvloop"],
}
"""What cannot be imported without an extra."""


@pytest.mark.parametrize("page", ["README.md", "docs/install.md"])
def test_the_table_has_every_extra(page: str) -> None:
    text = (ROOT / page).read_text()
    (table,) = re.findall(r"^\| extra \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    first_cells = "".join(row.split("|")[1] for row in table.splitlines())
    named = re.findall("`(.*?)`", first_cells)
    assert sorted(named) == sorted(EXTRAS)


def test_all_has_them_all() -> None:
    (everything,) = EXTRAS["all"]
    assert everything == f"fairlane[{','.join(sorted(set(EXTRAS) - {'all'}))}]"


def test_empty_extras_add_nothing_to_import() -> None:
    assert {name for name in EXTRAS if EXTRAS[name] and name != "all"} == set(LIBRARIES)


def test_the_package_knows_what_each_library_comes_with() -> None:
    assert {name: extra for extra, names in LIBRARIES.items() for name in names} == EXTRA_OF


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """A command where no library of an extra can be imported."""
    names = [name for each in LIBRARIES.values() for name in each]
    code = f"import sys; sys.modules.update(dict.fromkeys({names}))\n"
    code += "from fairlane.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("args", "extra"),
    [
        (["worker", "--store", "redis://127.0.0.1:1"], "redis"),
        (["server", "--store", "rediss+sentinel://127.0.0.1:1/a/0"], "redis"),
        (["up", "--store", "postgresql://127.0.0.1:1/none"], "postgres"),
        (["server", "--store", "sqlite://", "--compress-results", "100"], "compression"),
        (["worker", "--store", "sqlite://", "--blobs", "s3://bucket"], "s3"),
        (["server", "--store", "sqlite://", "--port", "0", "--blobs", "s3://bucket"], "s3"),
        (["up", "--store", "sqlite://", "--port", "0", "--blobs", "s3://bucket"], "s3"),
    ],
)
def test_a_missing_extra_is_one_sentence(args: list[str], extra: str) -> None:
    done = run(*args)
    assert done.returncode == 1
    expected = rf"Error: The .* is not installed: pip install 'fairlane\[{extra}\]'\.\n"
    assert re.fullmatch(expected, done.stderr), done.stderr


def test_encryption_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_ENCRYPTION_KEYS", run("key").stdout.strip())
    done = run("stats", "--store", "sqlite://")
    expected = "The library for encryption is not installed: pip install 'fairlane[encryption]'."
    assert done.stderr == f"Error: {expected}\n"


def test_an_application_that_needs_an_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fairlane itself never needs otel: a program that sets up traces has imported it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traced.py").write_text("from opentelemetry import trace\n")
    done = run("worker", "--app", "traced:app")
    assert done.returncode == 2
    expected = (
        r"Error: traced cannot be imported: ModuleNotFoundError: .* \(.*traced\.py, line 1\)\."
    )
    expected += r" Install it: pip install 'fairlane\[otel\]'\.\n"
    assert re.fullmatch(expected, done.stderr), done.stderr


def test_a_worker_imports_nothing_of_the_server() -> None:
    code = (
        "import sys, fairlane.cli.main, fairlane.cli.commands.worker, fairlane.handlers\n"
        "served = {'starlette', 'uvicorn', 'httptools', 'prometheus_client', 'websockets'}\n"
        "print(sorted(served & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
