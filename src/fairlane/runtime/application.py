"""What the runtime asks of the application."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, overload

from fairlane.runtime.calls import Handle
from fairlane.runtime.codecs import Codec
from fairlane.runtime.shapes import Prepared, Shape
from fairlane.runtime.workflows import WorkflowHandle

R = TypeVar("R")


class Application(Protocol):
    """The part of the application that submits calls."""

    payload_bytes: int
    """How large a payload may be."""
    codecs: dict[str, Codec]
    """The codecs that are registered, by name."""

    @property
    def url(self) -> str: ...
    @overload
    async def submit(self, call: Prepared[R], *, connection: Any = None) -> Handle[R]: ...
    @overload
    async def submit(self, call: Shape[R], *, connection: Any = None) -> WorkflowHandle[R]: ...
    @overload
    def submit_sync(self, call: Prepared[R], *, connection: Any = None) -> Handle[R]: ...
    @overload
    def submit_sync(self, call: Shape[R], *, connection: Any = None) -> WorkflowHandle[R]: ...
