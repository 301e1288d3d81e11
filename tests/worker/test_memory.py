"""Limits of memory, and what is said when they are met."""

from __future__ import annotations

import resource

import pytest

from fairlane.core.model import TaskError
from fairlane.core.outcomes import Completed, Failed
from fairlane.worker.memory import exhausted, explained, limit_memory, out_of_memory

MEGABYTE = 1024**2


def test_a_limit_holds_within_its_block() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    with limit_memory(64 * MEGABYTE):
        assert bytearray(8 * MEGABYTE)
        with pytest.raises(MemoryError):
            bytearray(512 * MEGABYTE)
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    with limit_memory(None):
        assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_a_limit_from_outside_is_not_raised() -> None:
    with limit_memory(64 * MEGABYTE):
        outer, _ = resource.getrlimit(resource.RLIMIT_AS)
        with limit_memory(512 * MEGABYTE):
            assert resource.getrlimit(resource.RLIMIT_AS)[0] == outer


def test_what_is_said() -> None:
    plain = explained(out_of_memory(), 1_000)
    assert isinstance(plain, Failed)
    assert plain.error.message == (
        "The handler needed more memory than its memory_limit of 1,000 bytes."
    )
    assert plain.error.retriable
    told = Failed(TaskError.of("Unable to allocate 7 GiB", code="MemoryError"), 5.0)
    fuller = explained(told, 1_000)
    assert isinstance(fuller, Failed)
    assert fuller.error.message.endswith("1,000 bytes (Unable to allocate 7 GiB).")
    assert fuller.after == 5.0
    assert explained(told, None) is told
    done = Completed(b"null")
    assert (explained(done, 1_000), exhausted(done), exhausted(told)) == (done, False, True)
