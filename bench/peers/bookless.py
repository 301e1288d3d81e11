"""Fairlane without its books, to see what they cost: no counters, and no journal.

There is no such setting. Whoever wants depths, totals and rates wants the counters, and live events
are read from the journal; so they are cut out here, for a worker that is measured and for nothing
else. What the engines gather for their books on the way (a list of ids here and there) stays.
"""

from __future__ import annotations

from typing import Any

from fairlane.core.journal import Passage
from fairlane.core.states import State
from fairlane.engines import files
from fairlane.engines.sqlite.accounting import Accounts, Key

_QUEUED = State.QUEUED.code

REDIS = """
local UNTIMED = ''
local function passage_for() return {lines = {}, duration = 0} end
local function transition_of() return '' end
local function add_task() end
local function add_run() end
local function add_worker_event() end
local function count_only() end
local function post() end
"""
"""In the place of `lua/lib/accounting.lua`."""

POSTGRES = """\
-- name: accounting
SELECT /* BEGIN accounting */ /* END accounting */;

-- name: mention
"""
"""In the place of what `sql/accounting.sql` has up to `mention`."""

_original = files.text


def _text(package: str, path: str) -> str:
    found = _original(package, path)
    match package.rpartition(".")[2], path:
        case "redis", "lua/lib/accounting.lua":
            return REDIS
        case "postgres", "sql/accounting.sql":
            _, _, rest = found.partition("-- name: mention\n")
            return POSTGRES + rest
    return found


def _mention(self: Accounts, passage: Passage) -> None:
    """Nothing for the journal."""


def _count(self: Accounts, key: Key, times: int, seconds: float = 0.0) -> None:  # noqa: ARG001
    """Only how deep streams are: claims go by that."""
    lane, level, source, target, _, _ = key
    gained = (target == _QUEUED) - (source == _QUEUED)
    if gained:
        self._depths[lane, level] = self._depths.get((lane, level), 0) + gained * times


def _replace(owner: Any, name: str, by: Any) -> None:
    setattr(owner, name, by)


# Before an engine is opened, which is when it reads its statements (SQLite's are code).
_replace(files, "text", _text)
_replace(Accounts, "mention", _mention)
_replace(Accounts, "count", _count)

from bench.peers.fairlane import app  # noqa: E402

__all__ = ["app"]
