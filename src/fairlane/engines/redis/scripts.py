"""Scripts live in `lua/`, one file per verb; what they share is put in front of them.

A script begins with a line of flags and may name parts of `lua/lib` that it needs:

    #!lua flags=allow-oom
    -- needs: record books

`allow-oom` lets it run when memory is full (settling must go on then), `no-writes` marks a reader;
without a flag a script is refused, before it has begun, when memory is full.
"""

from __future__ import annotations

from hashlib import sha1
from typing import NamedTuple

from fairlane.core import limits
from fairlane.core.states import State
from fairlane.engines.files import text
from fairlane.engines.redis import keys, record

FORMAT = 1
"""The version of everything that is written here. A store of another version is not touched."""


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
    source = "\n".join([flags, _constants(), text(__package__, "lua/common.lua"), *libraries, body])
    return Script(verb, source, sha1(source.encode(), usedforsecurity=False).hexdigest())


def _constants() -> str:
    states = [f"local {state.name} = {state.code}" for state in State]
    own = [f"local FORMAT = '{FORMAT}'", f"local JOURNAL_ENTRIES = {limits.JOURNAL_ENTRIES}"]
    return "\n".join([keys.lua(), record.lua(), *states, *own])
