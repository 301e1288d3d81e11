"""The packed record: the fields of a task that change, in one layout for Python and Lua.

A record has 89 bytes, then the id of the worker that holds the task; big endian, times in
microseconds, zero for none. Fields that change together are neighbours, so that a script builds a
new record from a few slices. The fields that depend on the time of submission come first, because
only the script knows the time.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from fairlane.core.ids import PACKED, pack

FIELDS = (
    ("STATE", "B"),
    ("VERSION", "I"),
    ("UPDATED_AT", "Q"),
    ("DUE_AT", "Q"),
    ("CLAIMED_AT", "Q"),
    ("STARTED_AT", "Q"),
    ("READY_AT", "Q"),
    ("RUN_AT", "q"),
    ("CREATED_AT", "Q"),
    ("RETRIES", "H"),
    ("RETURNS", "H"),
    ("TIMEOUT", "d"),
    ("EXPIRES_AT", "q"),
    ("LANE", "H"),
    ("LEVEL", "B"),
    ("ATTEMPT", "I"),
    ("WORKER", "B"),  # the length of the worker's id, which follows
)

LAST_LANE = 2**16 - 1
"""The largest number that a lane can have."""

HEAD = struct.Struct(">" + "".join(code for _, code in FIELDS))

LINE = struct.Struct(">16sIq")
"""A journal line of a task: its id, its attempt, and the run's microseconds (-1: untimed)."""


class Record(NamedTuple):
    """A decoded record. `rest` is what follows it in the stored value."""

    state: int
    version: int
    updated_at: int
    due_at: int
    claimed_at: int
    started_at: int
    ready_at: int
    run_at: int
    created_at: int
    retry_count: int
    returns: int
    timeout: float
    expires_at: int
    lane: int
    level: int
    attempt: int
    worker_id: str
    rest: bytes


def unpacked(stored: bytes) -> Record:
    """Return the record that a stored value starts with."""
    *values, length = HEAD.unpack_from(stored)
    end = HEAD.size + length
    return Record._make([*values, stored[HEAD.size : end].decode(), stored[end:]])


# A task as the submitter packs it: the record from RETRIES on, then the fixed part.
_SUBMITTED = struct.Struct(">HHdqHBIBHHI")
_FIXED = struct.Struct(">HHI")  # max_retries, length of the idempotency key, length of the spec


def submitted(
    lane: int,
    level: int,
    timeout: float | None,
    expires_at: int | None,
    max_retries: int,
    key: bytes,
    spec: bytes,
    payload: bytes,
) -> bytes:
    """Return the part of a new task that does not depend on the time of its submission."""
    head = _SUBMITTED.pack(
        0,
        0,
        timeout or 0.0,
        expires_at or 0,
        lane,
        level,
        0,
        0,
        max_retries,
        len(key),
        len(spec),
    )
    return head + key + spec + payload


def fixed(stored: bytes) -> tuple[int, bytes, bytes, bytes]:
    """Return the fixed part of a task: max_retries, idempotency key, spec, payload."""
    max_retries, key_length, spec_length = _FIXED.unpack_from(stored, HEAD.size)
    key = HEAD.size + _FIXED.size
    spec = key + key_length
    payload = spec + spec_length
    return max_retries, stored[key:spec], stored[spec:payload], stored[payload:]


def fence(attempt: int, worker_id: str) -> bytes:
    """Return the end of the record of a task that this worker executes as this attempt."""
    worker = worker_id.encode()
    return struct.pack(">IB", attempt, len(worker)) + worker


def raw_id(task_id: str) -> bytes:
    """Return a task id as it is stored. An invalid id gets a form that no stored id has."""
    try:
        raw = bytes.fromhex(task_id.replace("-", ""))
    except ValueError:
        raw = b""
    return raw if len(raw) == 16 else b"?" * 16 + task_id.encode("utf-8", "backslashreplace")


def raw_ids_of(task_ids: Sequence[str]) -> list[bytes]:
    """Return many ids as they are stored, several times faster than one by one."""
    try:
        packed = pack(task_ids)
    except ValueError:
        packed = b""
    if len(packed) != PACKED * len(task_ids) or {len(task_id) for task_id in task_ids} != {36}:
        return [raw_id(task_id) for task_id in task_ids]
    return [packed[start : start + PACKED] for start in range(0, len(packed), PACKED)]


def text_id(raw: bytes) -> str:
    """Return a stored id as text."""
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def positions() -> dict[str, int]:
    """Return the position of each field, counted from 1 for Lua; HEAD is the length of all."""
    found = {"HEAD": HEAD.size}
    position = 1
    for name, code in FIELDS:
        found[name] = position
        position += struct.calcsize(">" + code)
    return found
