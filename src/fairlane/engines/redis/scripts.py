"""Assemble Lua scripts from `lua/`: one file per script, preceded by the code that scripts share.

A script starts with a line of flags, and may name the files of `lua/lib` that it needs:

    #!lua flags=allow-oom
    -- needs: record accounting

`allow-oom` lets a script run when memory is full (settling must go on), `no-writes` marks a reader.
The server refuses a script without a flag before its start when memory is full.
"""

from __future__ import annotations

import re
from hashlib import sha1
from typing import NamedTuple

from fairlane.core import (
    clocks,
    encryption,
    fences,
    limits,
    machine,
    retention,
    trail,
    unused_lanes,
)
from fairlane.core.facts import SAMPLE
from fairlane.core.machine import Move, Place, Slot, sources_of
from fairlane.core.priority import HIGHEST
from fairlane.core.records import stored_error
from fairlane.core.states import NOWHERE, State
from fairlane.core.store_settings import SETTINGS
from fairlane.core.tally import BUCKETS_IN_MICROSECONDS
from fairlane.engines.files import text
from fairlane.engines.redis import keys, record

FORMAT = 4
"""The version of the stored data. Scripts refuse a store of another version."""

JOURNAL_BYTES = 64_000_000
"""The largest size of the journal. Its entries differ in size: one may hold 1,000 tasks."""


class Script(NamedTuple):
    """A script, and the hash of its text by which the server knows it."""

    name: str
    source: str
    sha: str


def script(verb: str) -> Script:
    """Return the script `lua/<verb>.lua` with everything it needs."""
    flags, _, body = text(__package__, f"lua/{verb}.lua").partition("\n")
    needs, _, _ = body.partition("\n")
    parts = needs.removeprefix("-- needs: ").split() if needs.startswith("-- needs: ") else []
    libraries = [text(__package__, f"lua/lib/{part}.lua") for part in parts]
    code = "\n".join([text(__package__, "lua/common.lua"), *libraries, body])
    # Lua allows 200 local names, and each costs time in every call: numbers are substituted, and
    # texts become local names only if the script uses them.
    numbers, texts = _numbers(), _texts()
    assert not numbers.keys() & texts.keys(), "one name for two things"
    code = _NAME.sub(lambda name: str(numbers.get(name[0], name[0])), code)
    used = set(_NAME.findall(code))
    named = [f"local {name} = {value}" for name, value in texts.items() if name in used]
    source = "\n".join([flags, *named, code])
    return Script(verb, source, sha1(source.encode(), usedforsecurity=False).hexdigest())


_NAME = re.compile(r"(?<!')\b[A-Z][A-Z_]+\b(?!')")
"""A constant in Lua; a quoted one is a command."""


def _numbers() -> dict[str, int]:
    return {
        **record.positions(),
        **{state.name: state.code for state in State},
        "NOWHERE": NOWHERE,
        "BATCH": limits.BATCH,
        "LOOKED_AT": retention.LOOKED_AT,
        "HIGHEST_LEVEL": HIGHEST,
        "STEP": clocks.STEP,
        "FENCE_MICROSECONDS": fences.FENCE_MICROSECONDS,
        "JOURNAL_ENTRIES": limits.JOURNAL_ENTRIES,
        "JOURNAL_BYTES": JOURNAL_BYTES,
        "LINE": record.LINE.size,
        "LAST_LANE": record.LAST_LANE,
        "DROPPED_LANE": unused_lanes.DROPPED,
        "FIRST_RUNS": limits.FIRST_RUNS,
        "LAST_RUNS": limits.LAST_RUNS,
        "TRAIL_BYTES": trail.BYTES,
        "TRAIL_STATES": trail.STATES,
    }


def _texts() -> dict[str, str]:
    """Return the text constants as Lua expressions."""
    return {
        # The first key of a script is the prefix.
        **{name: f"KEYS[1] .. '{key}'" for name, key in keys.NAMES.items()},
        "FORMAT": f"'{FORMAT}'",
        **{f"MOVE_{name}": _table(move) for name, move in _MOVES.items()},
        "SAMPLE": f"'{SAMPLE}'",
        "FENCE": f"'{fences.FENCE}'",
        "WAIT_BOUNDS": f"{{{', '.join(map(str, BUCKETS_IN_MICROSECONDS))}}}",
        "SETTINGS": f"'{SETTINGS}'",
        "ENCRYPTION": f"'{encryption.ENCRYPTION}'",
        "REQUIRED": f"'{encryption.REQUIRED}'",
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
    """Return a move as a Lua table. The code that applies a move knows what it clears."""
    error = (stored_error(move.error) or b"").decode()
    sources = "".join(f"\\{code}" for code in sorted(state.code for state in sources_of(move.verb)))
    lingers = str(move.slot is Slot.LINGER).lower()
    resets = str(move.place is Place.RESET).lower()
    return (
        f"{{verb = '{move.verb}', sources = '{sources}', state = {move.state.code}, "
        f"run = '{move.run or ''}', label = '{move.label}', lingers = {lingers}, "
        f"resets = {resets}, error = '{error}'}}"
    )
