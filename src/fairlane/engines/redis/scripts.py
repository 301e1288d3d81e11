"""Scripts live in `lua/`, one file per verb; what they share is put in front of them.

A script begins with a line of flags and may name parts of `lua/lib` that it needs:

    #!lua flags=allow-oom
    -- needs: record books

`allow-oom` lets it run when memory is full (settling must go on then), `no-writes` marks a reader;
without a flag a script is refused, before it has begun, when memory is full.
"""

from __future__ import annotations

import re
from hashlib import sha1
from typing import NamedTuple

from fairlane.core import limits, machine
from fairlane.core.facts import SAMPLE
from fairlane.core.machine import Move, Slot
from fairlane.core.records import stored_error
from fairlane.core.states import NOWHERE, State
from fairlane.engines.files import text
from fairlane.engines.redis import keys, record

FORMAT = 2
"""The version of everything that is written here. A store of another version is not touched."""

JOURNAL_BYTES = 64_000_000
"""What the journal may take up, however many entries that are: one may tell of 1,000 tasks."""


class Script(NamedTuple):
    """A script as the server knows it: by the hash of its text."""

    name: str
    source: str
    sha: str


def script(verb: str) -> Script:
    """The script `lua/<verb>.lua` with everything it needs."""
    flags, _, body = text(__package__, f"lua/{verb}.lua").partition("\n")
    needs, _, _ = body.partition("\n")
    parts = needs.removeprefix("-- needs: ").split() if needs.startswith("-- needs: ") else []
    libraries = [text(__package__, f"lua/lib/{part}.lua") for part in parts]
    code = "\n".join([text(__package__, "lua/common.lua"), *libraries, body])
    # Lua has room for 200 local names, and each costs time at every call: numbers are written out,
    # and texts are named only if they are used.
    numbers, texts = _numbers(), _texts()
    assert not numbers.keys() & texts.keys(), "one name for two things"
    code = _NAME.sub(lambda name: str(numbers.get(name[0], name[0])), code)
    used = set(_NAME.findall(code))
    named = [f"local {name} = {value}" for name, value in texts.items() if name in used]
    source = "\n".join([flags, *named, code])
    return Script(verb, source, sha1(source.encode(), usedforsecurity=False).hexdigest())


_NAME = re.compile(r"(?<!')\b[A-Z][A-Z_]+\b(?!')")
"""A constant in Lua; in quotes it is a command."""


def _numbers() -> dict[str, int]:
    return {
        **record.positions(),
        **{state.name: state.code for state in State},
        "NOWHERE": NOWHERE,
        "BATCH": limits.BATCH,
        "JOURNAL_ENTRIES": limits.JOURNAL_ENTRIES,
        "JOURNAL_BYTES": JOURNAL_BYTES,
        "LINE": record.LINE.size,
    }


def _texts() -> dict[str, str]:
    """As Lua writes them."""
    return {
        # A script is given the prefix as its first key.
        **{name: f"KEYS[1] .. '{key}'" for name, key in keys.NAMES.items()},
        "FORMAT": f"'{FORMAT}'",
        **{f"MOVE_{name}": _table(move) for name, move in _MOVES.items()},
        "SAMPLE": f"'{SAMPLE}'",
    }


_MOVES = {
    "CANCEL": machine.CANCEL,
    "DOOM": machine.DOOM,
    "REPLACE": machine.REPLACE,
    "EXPIRE": machine.EXPIRE,
    "DUE": machine.DUE,
    "FREE": machine.FREE,
}
"""Moves whose values are always the same. Those of runs and replays are sent with each call."""


def _table(move: Move) -> str:
    """Return a move as Lua reads it. What it clears is written out where it is applied."""
    error = (stored_error(move.error) or b"").decode()
    lingers = str(move.slot is Slot.LINGER).lower()
    return (
        f"{{verb = '{move.verb}', state = {move.state.code}, run = '{move.run or ''}', "
        f"label = '{move.label}', lingers = {lingers}, error = '{error}'}}"
    )
