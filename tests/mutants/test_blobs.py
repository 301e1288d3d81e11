"""The conformance tests of blobs catch every way to keep or drop them wrongly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from fairlane.core import blobs
from fairlane.core.blobs import _CHUNKS, _HEADS, _Head, _head_decoder
from fairlane.core.composed import Composed
from fairlane.core.documents import rewrites, write
from tests.conformance import test_blobs
from tests.conftest import Servers
from tests.mutants.catching import caught, checks_of
from tests.mutants.planting import Break, replaced

CHECKS = checks_of(test_blobs)

_chunk_ids = blobs._chunk_ids


@rewrites
def _drops_the_head_only(self: Any, key: str, older_than: float) -> Any:
    _, (stored,) = yield from self.read_documents(_HEADS, [key])
    if stored is not None:
        yield from write(self, _HEADS, [], [stored])


class _Forgetful:
    """Reads heads as if the uploads that were given up had not been begun."""

    def decode(self, value: bytes) -> _Head:
        head = _head_decoder.decode(value)
        return replace(
            head, uploads={id: n for id, n in head.uploads.items() if id == head.complete}
        )


class _Hasty:
    """Reads heads as if the last upload were complete."""

    def decode(self, value: bytes) -> _Head:
        head = _head_decoder.decode(value)
        return replace(head, complete=next(reversed(head.uploads), None))


FAULTS: dict[str, Break] = {
    "chunks stay behind": replaced(Composed, "drop_blob", _drops_the_head_only),
    "uploads that were given up are forgotten": replaced(blobs, "_head_decoder", _Forgetful()),
    "an upload counts before it is complete": replaced(blobs, "_head_decoder", _Hasty()),
    "young ones are dropped": replaced(blobs, "_is_older", lambda *_: True),
    "chunks of two uploads are mixed up": replaced(
        blobs, "_chunk_ids", lambda _, count: [f"{_CHUNKS}:{number}" for number in range(count)]
    ),
    "the last chunk is left out": replaced(
        blobs, "_chunk_ids", lambda upload, count: _chunk_ids(upload, count)[: count - 1 or 1]
    ),
}


CASES = [
    (kind, fault)
    for kind in ("sqlite-memory", "postgres-newest", "redis", "valkey")
    for fault in FAULTS
    # SQLite writes an upload in one transaction, so nobody sees a part of it.
    if (kind, fault) != ("sqlite-memory", "an upload counts before it is complete")
]


@pytest.mark.parametrize(("kind", "fault"), CASES)
async def test_the_suite_catches(
    kind: str, fault: str, servers: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        FAULTS[fault](patch)
        # A faulty order of writes may also be refused, or lead to what `zip` does not accept.
        assert await caught(servers, tmp_path, kind, CHECKS, Exception) is not None
