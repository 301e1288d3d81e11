"""Which conformance test catches a faulty engine."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import Servers
from tests.fixtures.stores import opened
from tests.mutants.planting import Break


def checks_of(*modules: ModuleType) -> list[Any]:
    """The tests of these modules that need nothing but a store."""
    return [
        check
        for module in modules
        for name, check in inspect.getmembers(module, inspect.iscoroutinefunction)
        if name.startswith("test_") and list(inspect.signature(check).parameters) == ["store"]
    ]


def planted(
    sqlite: dict[str, Break], postgres: dict[str, Break], redis: dict[str, Break]
) -> list[Any]:
    """Parameters (kind of store, fault) of a test. Valkey has the faults of Redis."""
    engines = {
        "sqlite-memory": sqlite,
        "postgres-newest": postgres,
        "redis": redis,
        "valkey": redis,
    }
    return [
        pytest.param(kind, break_it, id=f"{kind}: {fault}")
        for kind, faults in engines.items()
        for fault, break_it in faults.items()
    ]


async def caught(
    servers: Servers,
    folder: Path,
    kind: str,
    checks: Sequence[Any],
    errors: type[Exception] | None = None,
) -> str | None:
    """The first test that fails. `errors`: what a faulty engine may also raise."""
    failures = (AssertionError, pytest.fail.Exception, errors or AssertionError)
    for check in checks:
        async with opened(kind, servers, folder) as store:
            try:
                await check(store)
            except failures:
                return str(check.__name__)
    return None
