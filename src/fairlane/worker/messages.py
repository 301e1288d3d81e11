"""What a worker and its child processes say to each other: a length, then msgpack."""

from __future__ import annotations

import struct

import msgspec

from fairlane.core.machine import Completed, Failed, Outcome, Snoozed
from fairlane.core.model import Claimed, TaskError
from fairlane.core.sealing import Key


class Hello(msgspec.Struct):
    """The first word to a child: where to find the application, where that finds its store, the
    levels at which it logs, the keys to what it submits, and the token if
    that is a server."""

    path: list[str]
    target: str
    url: str
    levels: dict[str, int]
    keys: tuple[Key, ...] = ()
    token: str | None = None


class Order(msgspec.Struct):
    """A task to run."""

    task: Claimed


class Reported(msgspec.Struct, tag=True):
    """How far a run has come."""

    percent: float | None
    message: str | None


class Ended(msgspec.Struct, tag=True):
    """What came of a run: a result, an error, or a pause."""

    result: bytes | None = None
    error: TaskError | None = None
    after: float | None = None

    @classmethod
    def of(cls, outcome: Outcome) -> Ended:
        match outcome:
            case Completed(result):
                return cls(result=result)
            case Failed(error, after):
                return cls(error=error, after=after)
            case Snoozed(after):
                return cls(after=after)
            case _:
                raise AssertionError(f"a handler cannot bring about {outcome}")

    @property
    def outcome(self) -> Outcome:
        if self.result is not None:
            return Completed(self.result)
        if self.error is not None:
            return Failed(self.error, self.after)
        return Snoozed(self.after or 0.0)


class Logged(msgspec.Struct, tag=True):
    """A line of the child's log."""

    name: str
    level: int
    message: str
    created: float
    path: str
    line: int
    function: str
    process: int
    thread: str


class Broken(msgspec.Struct, tag=True):
    """The child cannot run anything."""

    message: str


Said = Reported | Ended | Logged | Broken

LENGTH = struct.Struct("!I")

said: msgspec.msgpack.Decoder[Said] = msgspec.msgpack.Decoder(Said)
ordered = msgspec.msgpack.Decoder(Order)
_encoder = msgspec.msgpack.Encoder()


def framed(message: msgspec.Struct) -> bytes:
    """A message as it travels."""
    body = _encoder.encode(message)
    return LENGTH.pack(len(body)) + body
