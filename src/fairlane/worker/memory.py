"""How much memory a run may take."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from fairlane.core.machine import Failed, Outcome
from fairlane.core.model import TaskError

_STATM = Path("/proc/self/statm")
_PAGE = resource.getpagesize()

CODE = MemoryError.__name__


@contextmanager
def limited(most: int | None) -> Iterator[None]:
    """Within this block the process gets at most so many bytes beyond what it has.

    Of address space, which is what the system can limit (RLIMIT_AS): what asks for more gets a
    MemoryError.
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
    """Whether a run ended for want of memory: what it left behind is not to be built upon."""
    return isinstance(outcome, Failed) and outcome.error.code == CODE


def explained(outcome: Outcome, most: int | None) -> Outcome:
    """The outcome, saying which limit was met."""
    if most is None or not isinstance(outcome, Failed) or not exhausted(outcome):
        return outcome
    said = "" if outcome.error.message == CODE else f" ({outcome.error.message})"
    message = f"The handler wanted more memory than its memory_limit of {most:,} bytes{said}."
    error = msgspec.structs.replace(outcome.error, message=message)
    return Failed(error, outcome.after)


def spent() -> Failed:
    """The outcome of a run that left no memory even to tell of it."""
    return Failed(TaskError.of(CODE, code=CODE))
