"""Files of tasks: one JSON object per line. All lines are checked before anything is submitted."""

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
from fairlane.core.definitions import Template
from fairlane.core.errors import InvalidInput, InvalidTask
from fairlane.core.model import NewTask
from fairlane.core.submission import new_task
from fairlane.core.text import shown

Templates = Mapping[str, Template]
"""How tasks are submitted whose types workers have published, by type."""

NAMED = 10
"""How many bad lines are named; the others are counted."""


class Line(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One line of a file. `task_type` and `parameters` are other names for type and payload."""

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


def task_of(line: bytes, defaults: Mapping[str, Any], templates: Templates) -> NewTask:
    """Return the task that a line describes. `defaults` apply to what it leaves out, and the
    templates of types to what is left then."""
    try:
        decoded = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidTask(f"{error}.") from None
    options: dict[str, Any] = {}
    for name in decoded.__struct_fields__:
        value = getattr(decoded, name)
        if value is not msgspec.UNSET:
            options[_ALIASES.get(name, name)] = value
    if "delay_seconds" in options or "run_at" in options:
        # A line with a time of its own ignores both defaults.
        defaults = {k: v for k, v in defaults.items() if k not in {"delay_seconds", "run_at"}}
    options = {**defaults, **options}
    if "type" not in options:
        raise InvalidTask("It names no type, and none was given on the command line.")
    if "payload" in options:
        options["payload"] = bytes(options["payload"])
    return submission_of(options.pop("type"), options.pop("payload", None), options, templates)


def submission_of(
    type: str,
    payload: Mapping[str, Any] | bytes | None,
    options: Mapping[str, Any],
    templates: Templates,
) -> NewTask:
    """Return a new task. What the options leave out is taken from the template of its type."""
    template = templates.get(type) or Template(type)
    task = new_task(type, payload, **template.options(options))
    template.check(task.payload)
    return task


@contextmanager
def open_twice(path: str) -> Iterator[IO[bytes]]:
    """Open a file that can be read twice. A pipe is copied first."""
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


def check(file: IO[bytes], name: str, defaults: Mapping[str, Any], templates: Templates) -> int:
    """Return the number of tasks in a file. Raises UsageError, naming the lines, if any is bad."""
    good, bad = 0, []
    for number, line in _lines(file):
        try:
            task_of(line, defaults, templates)
        except InvalidInput as error:
            bad.append(f"line {number:,}: {error.message}")
        else:
            good += 1
    if bad:
        more = f" And {len(bad) - NAMED:,} more." if len(bad) > NAMED else ""
        named = " ".join(bad[:NAMED])
        raise UsageError(f"Nothing was submitted, {shown(name)} has bad lines: {named}{more}")
    return good


def tasks(file: IO[bytes], defaults: Mapping[str, Any], templates: Templates) -> Iterator[NewTask]:
    """Yield the tasks of a checked file."""
    file.seek(0)
    for _, line in _lines(file):
        yield task_of(line, defaults, templates)


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield lines with their numbers, without empty ones."""
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield number, line
