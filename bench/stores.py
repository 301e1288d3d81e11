"""Stores to run a benchmark on: given by URL, or started here by name with default durability."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tests.fixtures.servers import postgres, redis

NAMES = ("sqlite", "postgres", "redis", "valkey")


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--store",
        action="append",
        help=f"a store URL, or one of {', '.join(NAMES)}: then it is started for the benchmark. "
        "Everything in it is lost! Default: sqlite, postgres and redis.",
    )


@contextmanager
def opened(store: str) -> Iterator[tuple[str, str]]:
    """(name, URL) of a store."""
    match store:
        case "sqlite":
            with tempfile.TemporaryDirectory(prefix="fairlane-bench-") as folder:
                yield "sqlite", f"sqlite:///{Path(folder) / 'tasks.db'}"
        case "postgres":
            with postgres("newest", settings={}) as server:
                yield server.name, server.new_database()
        case "redis" | "valkey":
            flavour: Literal["redis", "valkey"] = "redis" if store == "redis" else "valkey"
            with redis(flavour, appendonly=True) as server:
                yield f"{flavour}, appendfsync everysec", server.url
        case url:
            yield url.split("://", maxsplit=1)[0], url
