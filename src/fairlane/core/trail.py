"""The trail of a task: times of its earlier runs and replays that nothing else stores.

Every entry has four numbers of 8 bytes, big endian, so that a script or a statement can append one.
A run that is followed by another: its attempt, then when it was ready, claimed, and due again. A
replay: version and state before it in one negative number, then when the task was ready, when it
had ended, and when it was replayed: that is negative if the task waited for parents then. Zero
stands for no time. The newest entries are kept.
"""

from __future__ import annotations

import struct

from fairlane.core import limits
from fairlane.core.model import Past, moment, moment_or_none
from fairlane.core.states import State

ENTRY = struct.Struct(">qqqq")
BYTES = limits.TRAIL_ENTRIES * ENTRY.size
STATES = 16
"""More than there are states: version and state share a number."""


def run_entry(attempt: int, ready_at: int, claimed_at: int | None, due_at: int | None) -> bytes:
    """Return the entry of a run that is followed by another."""
    return ENTRY.pack(attempt, ready_at, claimed_at or 0, due_at or 0)


def replay_entry(
    version: int,
    state: State,
    ready_at: int,
    ended_at: int | None,
    now: int,
    *,
    waits: bool = False,
) -> bytes:
    """Return the entry of a replay. `version` and `state` are those before it. `waits`: for parents
    that run again."""
    at = -now if waits else now
    return ENTRY.pack(-(version * STATES + state.code), ready_at, ended_at or 0, at)


def trail_of(stored: bytes | None) -> tuple[Past, ...]:
    """Return a stored trail, oldest first."""
    return tuple(_past(*entry) for entry in ENTRY.iter_unpack(stored)) if stored else ()


def _past(subject: int, ready_at: int, happened_at: int, next_at: int) -> Past:
    version, state = divmod(-subject, STATES)
    replay = subject < 0
    return Past(
        attempt=None if replay else subject,
        version=version if replay else None,
        state=State.of(state) if replay else None,
        ready_at=moment(ready_at),
        happened_at=moment_or_none(happened_at or None),
        next_at=moment_or_none(abs(next_at) or None),
        waits=next_at < 0,
    )
