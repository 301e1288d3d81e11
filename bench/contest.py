"""Who is measured on which engine, and how: each measurement is a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import psycopg
from redis import Redis

from bench import machine
from bench.peers.peer import CHOICE, URL

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = ROOT / ".venv-peers"
STEAL_PERCENT = 10
"""A measurement is taken again when other tenants took more than this meanwhile."""
OTHERS_PERCENT = 15
"""With more than this in use by others, numbers of one minute say little about the next."""
ATTEMPTS = 3
TIMEOUT_SECONDS = 300


class Contender(msgspec.Struct, frozen=True):
    """A queue in one configuration."""

    name: str
    module: str
    tasks: int
    """How many it drains in about two seconds."""
    choice: str = ""
    environment: str | None = "peers"
    """A dependency group in pyproject.toml; None is this environment."""
    keeps_results: bool = True
    submits: bool = True
    """Whether its submissions are of interest: of several configurations, those of the first."""
    source: Path = ROOT / "src"
    """Where Fairlane's code is: that of another checkout, to compare versions."""

    @property
    def python(self) -> Path:
        if self.environment is None:
            return Path(sys.executable)
        return ENVIRONMENTS / self.environment / "bin" / "python"


def fairlane(choice: str, tasks: int) -> Contender:
    return Contender(f"Fairlane, {choice}", "fairlane", tasks, choice, None)


def engine_of(url: str) -> str:
    """The kind of store: sqlite, postgres or redis."""
    scheme = urlsplit(url).scheme
    if scheme.startswith("postgres"):
        return "postgres"
    return "sqlite" if scheme == "sqlite" else "redis"


OURS = {
    "redis": {"one": fairlane("one", 60_000), "threads": fairlane("threads", 20_000)},
    "postgres": {
        "one": fairlane("one", 30_000),
        "two": fairlane("two", 40_000),
        "threads": fairlane("threads", 20_000),
    },
    "sqlite": {"one": fairlane("one", 50_000), "threads": fairlane("threads", 20_000)},
}

PEERS: dict[str, Sequence[Contender]] = {
    "redis": (
        Contender("Celery", "celery", 2_000),
        Contender("Dramatiq", "dramatiq", 4_500),
        Contender("RQ", "rq", 1_500),
        Contender("Huey", "huey", 6_000),
        Contender("arq", "arq", 3_000, environment="peers-arq"),
        Contender("SAQ", "saq", 5_000, environment="peers-saq"),
        Contender("Taskiq", "taskiq", 4_000),
        Contender("streaQ", "streaq", 3_000),
    ),
    "postgres": (
        Contender("SAQ", "saq", 1_200, environment="peers-saq"),
        Contender("Procrastinate", "procrastinate", 1_200),
        Contender("Procrastinate, threads", "procrastinate", 1_200, "threads", submits=False),
        Contender("PgQueuer, 10 × 1", "pgqueuer", 8_000, "10x1", keeps_results=False),
        Contender(
            "PgQueuer, 100 × 2", "pgqueuer", 25_000, "100x2", keeps_results=False, submits=False
        ),
        Contender(
            "PgQueuer, 500 × 2", "pgqueuer", 40_000, "500x2", keeps_results=False, submits=False
        ),
    ),
    "sqlite": (
        Contender("Huey", "huey", 4_000),
        Contender("Huey, sync off", "huey", 14_000, "nosync"),
    ),
}


class Failed(Exception):
    """A measurement did not come to its end."""


class Measured(msgspec.Struct, frozen=True):
    """What one process found."""

    found: dict[str, Any]
    steal: float
    others: float
    """Percent of the CPU that others used right before, when nothing of ours ran."""


def measure(
    contender: Contender, what: str, url: str, *, tasks: int, seconds: float = 1.0
) -> Measured:
    """Measure one thing of one queue on an empty store; again, when too much CPU was stolen.

    When it is stolen every time, what was measured last is answered, and its `steal` says so.
    """
    attempts = ATTEMPTS
    while True:
        attempts -= 1
        others = machine.busy_percent()
        steal = machine.Steal()
        found = _once(contender, what, url, tasks, seconds)
        stolen = steal.percent()
        if stolen <= STEAL_PERCENT or not attempts:
            return Measured(found, stolen, others)
        print(f"  {contender.name}, {what}: {stolen:.0f} % steal, discarded", file=sys.stderr)


def _once(contender: Contender, what: str, url: str, tasks: int, seconds: float) -> dict[str, Any]:
    with empty(url) as store:
        environ = {
            **os.environ,
            URL: store,
            CHOICE: contender.choice,
            "PYTHONPATH": str(contender.source),
        }
        command = [str(contender.python), "-m", "bench.peers.run", contender.module, what]
        options = ["--tasks", str(tasks), "--seconds", str(seconds)]
        try:
            process = subprocess.run(
                command + options,
                cwd=ROOT,
                env=environ,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise Failed("it is not installed: make bench-peers") from None
        except subprocess.TimeoutExpired:
            raise Failed(f"it took more than {TIMEOUT_SECONDS} s") from None
    if process.returncode != 0:
        raise Failed(process.stderr.strip()[-1_500:])
    found: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return found


@contextmanager
def empty(url: str) -> Iterator[str]:
    """A store like this one with nothing in it: everything in a server's is lost."""
    match engine_of(url):
        case "sqlite":
            folder = Path(urlsplit(url).path.removeprefix("/")).parent
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                yield f"sqlite:///{Path(fresh).absolute() / 'tasks.db'}"
        case "postgres":
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA IF EXISTS fairlane CASCADE")
                connection.execute("DROP SCHEMA public CASCADE")
                connection.execute("CREATE SCHEMA public")
            yield url
        case _:
            with Redis.from_url(url) as client:
                client.flushdb()
            yield url


def describe(url: str, peers: Sequence[Contender]) -> str:
    """The server, its durability, and the versions of everyone who is measured."""
    installed = []
    for environment in sorted({peer.environment for peer in peers if peer.environment}):
        those = [peer for peer in peers if peer.environment == environment]
        packages = sorted({peer.module for peer in those} | {_LIBRARY[engine_of(url)]} - {""})
        installed.append(_versions(those[0].python, packages))
    return "; ".join(filter(None, [_server(url), *installed]))


_LIBRARY = {"redis": "redis", "postgres": "psycopg", "sqlite": ""}


def _server(url: str) -> str:
    match engine_of(url):
        case "sqlite":
            return ""
        case "postgres":
            with psycopg.connect(url) as connection:
                shown = []
                for name in ("server_version", "fsync", "synchronous_commit"):
                    row = connection.execute("SELECT current_setting(%s)", [name]).fetchone()
                    shown.append(f"{name} {row[0] if row else '?'}")
            return "PostgreSQL: " + ", ".join(shown)
        case _:
            with Redis.from_url(url, decode_responses=True) as client:
                version = client.info("server")["redis_version"]
                settings = client.config_get("append*")
            shown = [f"{name} {settings[name]}" for name in ("appendonly", "appendfsync")]
            return f"Redis {version}: " + ", ".join(shown)


def _versions(python: Path, packages: Sequence[str]) -> str:
    code = (
        "from importlib.metadata import version; import sys; "
        "print(', '.join(f'{name} {version(name)}' for name in sys.argv[1:]))"
    )
    command = [str(python), "-c", code, *packages]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return f"{', '.join(packages)}: not installed (make bench-peers)"
    return done.stdout.strip()
