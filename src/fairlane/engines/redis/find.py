"""find: return the ids of tasks that a filter admits.

Candidates come from the index of all ids, or, if the filter names states with few tasks, from the
sets of those states. A call reads the heads of a bounded number of candidates.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from fairlane.core import limits
from fairlane.core.errors import InvalidFilter
from fairlane.core.filters import Filter, Found, cursor_of, task_id_of
from fairlane.core.flow import Flow, reads
from fairlane.core.ids import PACKED
from fairlane.core.states import TERMINAL, State
from fairlane.core.text import shown
from fairlane.engines.redis.context import Context
from fairlane.engines.redis.record import raw_id, text_id
from fairlane.engines.redis.scripts import script

FIND_NEWEST = script("find_newest")
READ_HEADS = script("read_heads")
FIND_SMALL = script("find_small")

# A record (see FIELDS in record.py): state, updated_at, created_at, lane, level.
_HEAD = struct.Struct(">B4xQ40xQ20xHB5x")

_FIRST_READ = 100
_LARGEST_READ = 1_000


@reads
def find(self: Context, filter: Filter, limit: int, cursor: str | None = None) -> Flow[Found]:
    if not isinstance(limit, int) or not 1 <= limit <= limits.PAGE:
        raise InvalidFilter(f"A page has 1 to {limits.PAGE:,} tasks. Got {shown(limit)}.")
    after = task_id_of(cursor)
    last = b"" if after is None else raw_id(after)
    known = yield from self.refresh()
    lanes = {lane.id for lane in known.lanes.values() if filter.admits_lane(lane)}
    if not lanes:
        return Found([], None)
    small = yield from _find_small(
        self, filter, last, lanes if len(lanes) < len(known.lanes) else set()
    )
    found: list[str] = []
    checked = 0
    while checked < limits.SCAN:
        # Each read is larger: a query for the newest ten tasks need not read thousands.
        size = min(max(limit, _FIRST_READ, checked), _LARGEST_READ, limits.SCAN - checked)
        wanted = (int(filter.worker_id is not None), int(filter.reads_spec))
        if small is None:
            reply = yield from self.call(FIND_NEWEST, *wanted, _below(last), size)
        else:
            reply = yield from self.call(READ_HEADS, *wanted, *small[checked : checked + size])
        ids = _split(reply[0])
        seen = 0
        for admitted in _admitted(filter, lanes, *reply[1:]):
            last = ids[seen]
            seen += 1
            if admitted:
                found.append(text_id(last))
                if len(found) == limit:
                    return Found(found, cursor_of(text_id(last)))
        checked += seen
        if seen < len(ids):
            break  # large payloads: the script stopped early, and so does this call
        if len(ids) < size:
            return Found(found, None)
    return Found(found, cursor_of(text_id(last)))


def _admitted(
    filter: Filter, lanes: set[int], heads: bytes, workers: list[bytes], specs: list[bytes]
) -> Iterator[bool]:
    """Yield for each task whether the filter admits it."""
    states = {state.code: state for state in filter.states or State}
    for at, (code, updated_at, created_at, lane, level) in enumerate(_HEAD.iter_unpack(heads)):
        state = states.get(code)
        if state is None or lane not in lanes:  # also a task that does not exist
            yield False
            continue
        completed_at = updated_at if state in TERMINAL else None
        worker_id = workers[at].decode() if workers else None
        yield filter.admits(state, level, created_at, completed_at, worker_id) and (
            not specs or filter.admits_spec(specs[at] or None)
        )


def _find_small(
    self: Context, filter: Filter, last: bytes, lanes: set[int]
) -> Flow[list[bytes] | None]:
    """Return the newest candidates below `last`, newest first; None if there are too many.

    Tasks that ended badly are stored by id. Other tasks can be sorted if there are no more of them
    than one call may read.
    """
    if filter.states is None:
        return None
    codes = bytes(state.code for state in filter.states)
    worker_id = filter.worker_id or b""
    blocks = yield from self.call(
        FIND_SMALL, _below(last), limits.SCAN, codes, worker_id, len(lanes), *lanes
    )
    if not blocks:
        return None
    ids = {raw for block in blocks for raw in _split(block) if not last or raw < last}
    return sorted(ids, reverse=True)


def _below(last: bytes) -> bytes:
    return b"(" + last if last else b"+"


def _split(ids: bytes) -> list[bytes]:
    return [ids[at : at + PACKED] for at in range(0, len(ids), PACKED)]
