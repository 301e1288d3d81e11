"""The conformance tests of compression catch results that are stored or read wrongly."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core.compression import stored_form
from fairlane.core.errors import FairlaneError
from fairlane.core.flow import Flow
from fairlane.core.outcomes import Completed
from fairlane.engines import sealing
from fairlane.engines.compression import operations, results
from fairlane.engines.compression.driver import compress
from fairlane.engines.postgres import inspect as postgres
from fairlane.engines.redis import inspect as redis
from fairlane.engines.sqlite import inspect as sqlite
from fairlane.runtime import execution
from fairlane.wire import worker_protocol
from tests.conformance import test_compression
from tests.conftest import Servers
from tests.fixtures.stores import World
from tests.mutants.catching import caught, checks_of, planted
from tests.mutants.planting import Break, replaced


async def damaged(store: World) -> None:
    for stored in (b'{"$zstd":"AAAA"}', stored_form(compress(test_compression.FORGED[0]))):
        await test_compression.test_one_that_is_damaged_is_refused_and_nothing_else(store, stored)


async def looks_like_ours(store: World) -> None:
    await test_compression.test_a_result_that_only_looks_like_ours_is_read_as_it_is(
        store, {"$zstd": "abc"}
    )


CHECKS = [damaged, looks_like_ours, *checks_of(test_compression)]
Compressing = operations._CompressingOperations
Sealing = sealing.operations._SealingOperations


def _as_stored(tasks: Iterable[Any]) -> Flow[list[Any]]:
    yield from ()
    return list(tasks)


def _unchanged(_: Any, settlement: Any) -> Any:
    return settlement


def _whatever_its_size(_: Any, settlement: Any) -> Any:
    result = stored_form(compress(settlement.outcome.result))
    return replace(settlement, outcome=Completed(result))


def _not_damaged(value: bytes) -> bytes:
    return value


def _unescaped(value: bytes, *, codec: bool = False) -> bytes:
    assert isinstance(codec, bool)
    return value


def _whatever_it_is(_: bytes) -> None:
    pass


def _page_as_found(self: Any, page: Any) -> Flow[Any]:
    return replace(page, tasks=(yield from self._opened_tasks(page.tasks)))


SHARED: dict[str, Break] = {
    "nothing is compressed": replaced(Compressing, "_compressed", _unchanged),
    "what grows is compressed, too": replaced(Compressing, "_compressed", _whatever_its_size),
    "a damaged result is not marked": replaced(results, "damaged", _not_damaged),
    "anything is a result once it is expanded": replaced(results, "check_json", _whatever_it_is),
    "a handler's result is taken for a compressed one": replaced(execution, "plain", _unescaped),
    "so is that of a worker over HTTP": replaced(worker_protocol, "plain", _unescaped),
    "a page of sealed results has no bound": replaced(Sealing, "_opened_page", _page_as_found),
}


def _of(inspect: Any) -> dict[str, Break]:
    return SHARED | {"results are read as stored": replaced(inspect, "expand_tasks", _as_stored)}


@pytest.mark.parametrize(("kind", "break_it"), planted(_of(sqlite), _of(postgres), _of(redis)))
async def test_the_suite_catches(
    kind: str, break_it: Break, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        break_it(patch)
        assert await caught(servers, tmp_path, kind, CHECKS, FairlaneError) is not None
