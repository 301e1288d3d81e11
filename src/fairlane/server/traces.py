"""Traces of submissions: a task goes on with that of the request which brought it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from msgspec.structs import replace

from fairlane.core.model import NewTask
from fairlane.telemetry.tracing import submitting

# As W3C Trace Context has it. A header that makes no sense is passed over, as it asks for.
_TRACEPARENT: Final = re.compile(rb"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def bringing(
    headers: Mapping[bytes, bytes], tasks: Sequence[NewTask]
) -> AbstractContextManager[Sequence[NewTask]]:
    """Within it, what a request brought is submitted: the tasks that it gives."""
    given = headers.get(b"traceparent")
    found = None if given is None else _TRACEPARENT.fullmatch(given)
    if found is not None:
        tasks = [_under(task, found[0].decode(), found[1].decode()) for task in tasks]
    return submitting(tasks)


def _under(task: NewTask, traceparent: str, trace_id: str) -> NewTask:
    """The task as part of a trace, unless it names one of its own."""
    spec = task.spec
    if spec.traceparent is not None:
        return task
    named = spec.trace_id or trace_id
    return replace(task, spec=replace(spec, traceparent=traceparent, trace_id=named))
