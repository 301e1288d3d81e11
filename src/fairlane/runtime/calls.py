"""A call that is ready to be submitted, and who submits it."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

import msgspec

from fairlane.core.model import Claimed, NewTask
from fairlane.runtime.handle import Handle

R = TypeVar("R")


class Prepared(msgspec.Struct, Generic[R], frozen=True):
    """A call that is ready to be submitted, alone or among others."""

    task: NewTask
    hint: Any
    """What its result is to be converted to."""

    def within(self, parent: Claimed) -> Prepared[R]:
        """The same as part of a running task's trace, unless it names one of its own."""
        spec = self.task.spec
        if spec.trace_id is not None:
            return self
        spec = msgspec.structs.replace(
            spec,
            trace_id=parent.trace_id,
            traceparent=spec.traceparent or parent.spec.traceparent,
        )
        return Prepared(msgspec.structs.replace(self.task, spec=spec), self.hint)


class Application(Protocol):
    """As much of the application as is needed to submit."""

    async def submit(self, call: Prepared[R]) -> Handle[R]: ...
    def submit_sync(self, call: Prepared[R]) -> Handle[R]: ...
