"""Files of tasks: one JSON object a line, judged as a whole before anything is submitted."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import msgspec

from fairlane.cli.errors import UsageError
from fairlane.core.errors import InvalidInput, InvalidTask
from fairlane.core.model import NewTask
from fairlane.core.submission import new_task
from fairlane.core.text import shown

NAMED = 10
"""So many bad lines are named; of the others, how many there are."""


class Line(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A task as a line of a file has it. `task_type` and `parameters` mean type and payload."""

    type: str | msgspec.UnsetType = msgspec.UNSET
    task_type: str | msgspec.UnsetType = msgspec.UNSET
    payload: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    parameters: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    queue: str | msgspec.UnsetType = msgspec.UNSET
    priority: str | int | msgspec.UnsetType = msgspec.UNSET
    required_capabilities: list[str] | msgspec.UnsetType = msgspec.UNSET
    max_retries: int | msgspec.UnsetType = msgspec.UNSET
    timeout_seconds: float | msgspec.UnsetType | None = msgspec.UNSET
    delay_seconds: float | msgspec.UnsetType = msgspec.UNSET
    run_at: datetime | msgspec.UnsetType = msgspec.UNSET
    expires_at: datetime | msgspec.UnsetType = msgspec.UNSET
    idempotency_key: str | msgspec.UnsetType = msgspec.UNSET
    unique: bool | msgspec.UnsetType = msgspec.UNSET
    tags: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    depends_on: list[str] | msgspec.UnsetType = msgspec.UNSET
    trace_id: str | msgspec.UnsetType = msgspec.UNSET
    traceparent: str | msgspec.UnsetType = msgspec.UNSET
    task_id: str | msgspec.UnsetType = msgspec.UNSET


_ALIASES = {"task_type": "type", "parameters": "payload"}
_decoder = msgspec.json.Decoder(Line)


def task_of(line: bytes, defaults: Mapping[str, Any]) -> NewTask:
    """The task that a line describes. `defaults` hold for what it leaves out."""
    try:
        said = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidTask(f"{error}.") from None
    words: dict[str, Any] = {}
    for name in said.__struct_fields__:
        value = getattr(said, name)
        if value is not msgspec.UNSET:
            words[_ALIASES.get(name, name)] = value
    if "delay_seconds" in words or "run_at" in words:
        # A line that says when speaks for itself.
        defaults = {k: v for k, v in defaults.items() if k not in {"delay_seconds", "run_at"}}
    words = {**defaults, **words}
    if "type" not in words:
        raise InvalidTask("It names no type, and none was given on the command line.")
    if "payload" in words:
        words["payload"] = bytes(words["payload"])
    return new_task(words.pop("type"), words.pop("payload", None), **words)


@contextmanager
def reopened(path: str) -> Iterator[IO[bytes]]:
    """A file that can be read twice; a pipe is put aside first."""
    try:
        if path == "-" or not Path(path).is_file():
            with tempfile.TemporaryFile() as copy:
                if path == "-":
                    shutil.copyfileobj(sys.stdin.buffer, copy)
                else:
                    with Path(path).open("rb") as pipe:
                        shutil.copyfileobj(pipe, copy)
                copy.seek(0)
                yield copy
        else:
            with Path(path).open("rb") as file:
                yield file
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be read: {error.strerror}.") from None


def check(file: IO[bytes], name: str, defaults: Mapping[str, Any]) -> int:
    """How many tasks a file describes; raises, naming lines, unless all of them are good."""
    good, bad = 0, []
    for number, line in _lines(file):
        try:
            task_of(line, defaults)
        except InvalidInput as error:
            bad.append(f"line {number:,}: {error.message}")
        else:
            good += 1
    if bad:
        more = f" And {len(bad) - NAMED:,} more." if len(bad) > NAMED else ""
        told = " ".join(bad[:NAMED])
        raise UsageError(f"Nothing was submitted, {shown(name)} has bad lines: {told}{more}")
    return good


def tasks(file: IO[bytes], defaults: Mapping[str, Any]) -> Iterator[NewTask]:
    """The tasks of a file that was checked."""
    file.seek(0)
    for _, line in _lines(file):
        yield task_of(line, defaults)


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Lines with their numbers, empty ones left out."""
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield number, line
