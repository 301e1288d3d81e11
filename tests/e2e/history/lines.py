"""The history: one JSON line for everything that clients and handlers did."""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`at` is the machine's monotonic clock, `wall` its time of day: that of the engines, since all
    of them run on this machine."""

    at: float
    wall: float


class Invoke(Line, frozen=True, tag="invoke"):
    """A client asks. `op`: submit, schedule, cancel, replay, pause, resume; `payload`: the digest
    of one, and with schedule that of any number of tasks."""

    call: str
    op: str
    task: str | None = None
    payload: str | None = None
    key: str | None = None


class Answer(Line, frozen=True):
    call: str


class Ok(Answer, frozen=True, tag="ok"):
    """The store did it. `found`: the state a cancelled task was in."""

    task: str | None = None
    found: str | None = None


class Fail(Answer, frozen=True, tag="fail"):
    """The store refused: nothing was changed."""


class Unknown(Answer, frozen=True, tag="unknown"):
    """Nobody knows: the answer did not come."""


class Handled(Line, frozen=True):
    task: str
    attempt: int
    worker: str
    pid: int


class Start(Handled, frozen=True, tag="start"):
    """A handler is about to do its work."""


class End(Handled, frozen=True, tag="end"):
    """It has done it. `result`: the digest of what it returns, None if it raises."""

    result: str | None = None


class Took(Handled, frozen=True, tag="took"):
    """It was given results of parents: `value`, in which each result says whose it is."""

    value: Any


class Killed(Line, frozen=True, tag="killed"):
    """A worker was killed."""

    worker: str


class Healed(Line, frozen=True, tag="healed"):
    """The last trouble is over: these processes should be at work again soon."""

    pids: tuple[int, ...]


AnyLine = Invoke | Ok | Fail | Unknown | Start | End | Took | Killed | Healed
decoded = msgspec.json.Decoder(AnyLine).decode
_encoder = msgspec.json.Encoder()


def digest(data: bytes) -> str:
    """What stands for a payload or a result."""
    return hashlib.blake2b(data, digest_size=8).hexdigest()


class Recorder:
    """Appends lines to a file, each in one write, so that whoever dies leaves whole lines."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, kind: type[Line], **values: object) -> None:
        line = kind(at=time.monotonic(), wall=time.time(), **values)
        os.write(self._file, _encoder.encode(line) + b"\n")

    def close(self) -> None:
        os.close(self._file)


class Call(msgspec.Struct, frozen=True):
    """What a client asked, and how it was answered."""

    asked: Invoke
    answer: Answer

    @property
    def ok(self) -> Ok | None:
        return self.answer if isinstance(self.answer, Ok) else None


class Run(msgspec.Struct, frozen=True):
    """What one handler did under one fence. Without an end it died, or was ended."""

    start: Start
    end: End | None


class History:
    """The lines, put together. A client that died in a call does not know what came of it."""

    def __init__(self, lines: Iterable[AnyLine]) -> None:
        self.lines = tuple(sorted(lines, key=lambda line: line.at))
        answers = {line.call: line for line in self.lines if isinstance(line, Answer)}
        self.calls = tuple(
            Call(
                line, answers.get(line.call) or Unknown(at=line.at, wall=line.wall, call=line.call)
            )
            for line in self.lines
            if isinstance(line, Invoke)
        )
        ends = {
            (line.task, line.attempt, line.worker): line
            for line in self.lines
            if isinstance(line, End)
        }
        runs: dict[str, list[Run]] = defaultdict(list)
        for line in self.lines:
            if isinstance(line, Start):
                end = ends.get((line.task, line.attempt, line.worker))
                runs[line.task].append(Run(line, end))
        self.runs = dict(runs)
        """By task, in the order they began."""
        self._replays = Counter(
            call.asked.task for call in self.asked("replay") if not isinstance(call.answer, Fail)
        )
        self.taken = tuple(line for line in self.lines if isinstance(line, Took))

    @classmethod
    def read(cls, *paths: Path) -> History:
        """What recorders wrote."""
        return cls(decoded(line) for path in paths for line in path.read_bytes().splitlines())

    def asked(self, *ops: str) -> list[Call]:
        return [call for call in self.calls if call.asked.op in ops]

    def replays(self, task_id: str) -> int:
        """How often a task was, or may have been, made ready again by hand."""
        return self._replays[task_id]
