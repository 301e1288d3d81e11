"""The memory limit of a run in a child process."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from fairlane.core.model import TaskError
from fairlane.core.outcomes import Failed, Outcome

_STATM = Path("/proc/self/statm")
_PAGE = resource.getpagesize()

CODE = MemoryError.__name__


@contextmanager
def limit_memory(most: int | None) -> Iterator[None]:
    """Within this block the process can use at most `most` bytes more than it uses now.

    The limit is one of address space (RLIMIT_AS). Allocations above it raise MemoryError.
    """
    if most is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = int(_STATM.read_text().split()[0]) * _PAGE + most
    present = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([wanted, *present]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def exhausted(outcome: Outcome) -> bool:
    """Return whether a run ran out of memory. Its process should not be used again."""
    return isinstance(outcome, Failed) and outcome.error.code == CODE


def explained(outcome: Outcome, most: int | None) -> Outcome:
    """Return the outcome with an error message that names the limit."""
    if most is None or not isinstance(outcome, Failed) or not exhausted(outcome):
        return outcome
    detail = "" if outcome.error.message == CODE else f" ({outcome.error.message})"
    message = f"The handler needed more memory than its memory_limit of {most:,} bytes{detail}."
    error = msgspec.structs.replace(outcome.error, message=message)
    return Failed(error, outcome.after)


def out_of_memory() -> Failed:
    """Return the outcome of a run that left no memory even for its own error."""
    return Failed(TaskError.of(CODE, code=CODE))
