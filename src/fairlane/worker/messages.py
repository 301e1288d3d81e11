"""Messages between a worker and its child processes: a length, then msgpack."""

from __future__ import annotations

import struct

import msgspec

from fairlane.core.model import Claimed, TaskError
from fairlane.core.outcomes import Completed, Failed, Outcome, Snoozed
from fairlane.core.sealing import Key


class Setup(msgspec.Struct):
    """The first message to a child: where the application is (`path`, `target`), what it needs to
    submit tasks (`url`, `keys`, `token`, `blobs`), and the worker's log levels. `blobs` is None if
    there are none, or if the application has a `BlobStore` of its own."""

    path: list[str]
    target: str
    url: str
    levels: dict[str, int]
    keys: tuple[Key, ...] = ()
    token: str | None = None
    blobs: str | None = None


class Order(msgspec.Struct):
    """A task to run."""

    task: Claimed


class Reported(msgspec.Struct, tag=True):
    """Progress of a run."""

    percent: float | None
    message: str | None


class RunEnded(msgspec.Struct, tag=True):
    """The outcome of a run: a result, an error, or a snooze."""

    result: bytes | None = None
    error: TaskError | None = None
    after: float | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> RunEnded:
        match outcome:
            case Completed(result):
                return cls(result=result)
            case Failed(error, after):
                return cls(error=error, after=after)
            case Snoozed(after):
                return cls(after=after)
            case _:
                raise AssertionError(f"a handler cannot have the outcome {outcome}")

    @property
    def outcome(self) -> Outcome:
        if self.result is not None:
            return Completed(self.result)
        if self.error is not None:
            return Failed(self.error, self.after)
        return Snoozed(self.after or 0.0)


class Logged(msgspec.Struct, tag=True):
    """A log record of the child."""

    name: str
    level: int
    message: str
    trace: str
    """The traceback; empty for none."""
    created: float
    path: str
    line: int
    function: str
    process: int
    thread: str


class Broken(msgspec.Struct, tag=True):
    """The child cannot run anything."""

    message: str


FromChild = Reported | RunEnded | Logged | Broken

LENGTH = struct.Struct("!I")

from_child: msgspec.msgpack.Decoder[FromChild] = msgspec.msgpack.Decoder(FromChild)
order = msgspec.msgpack.Decoder(Order)
_encoder = msgspec.msgpack.Encoder()


def encode(message: msgspec.Struct) -> bytes:
    """Return a message as bytes, with its length."""
    body = _encoder.encode(message)
    return LENGTH.pack(len(body)) + body
