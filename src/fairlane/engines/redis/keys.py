"""Every key of a store, named in one place for Python and for Lua.

All of them begin with the store's prefix in braces, `{fairlane}:`. What is in braces decides where
Redis Cluster puts a key, so a store lives on one node and a script may touch all of it.
"""

from __future__ import annotations

import re

from fairlane.core.errors import InvalidInput

_PREFIX = re.compile(r"[A-Za-z0-9_.:\-]{1,100}\Z")

NAMES = {
    # The store itself.
    "META": "meta",  # hash: format, catalogue (a version), clock_offset (tests only)
    "CONTROLS": "controls",  # hash: what operators have set, see context.py
    "LANES": "lanes",  # zset: JSON of (queue, type, capabilities), scored by the lane's id
    # Tasks. Ids are 16 raw bytes; a record is packed as record.py says.
    "TASKS": "tasks",  # hash: id -> its record as submitted, then what never changes
    "LIVE": "live",  # hash: id -> its record, once it has moved since its submission
    "FINISHED": "finished",  # hash: id -> its record, then its result
    "ERRORS": "errors",  # hash: id -> the last error, as JSON
    "PROGRESS": "progress",  # hash: id -> what it last said of itself, as JSON
    "RUNS": "runs",  # hash: id -> its runs that did not complete, one after another
    # Where tasks stand. A run is a task's id and its attempt: 20 bytes.
    "STREAMS": "streams",  # set: lane:level of every queue that is not empty
    "QUEUE": "queue:",  # + lane:level; zset: ids by ready_at
    "DUE": "due",  # zset: ids of scheduled and retrying tasks, by their time
    "EXPIRING": "expiring",  # zset: ids of waiting tasks that have an expiry, by it
    "DEADLINES": "deadlines",  # zset: ids of started tasks that have a time limit, by its end
    # + state; stream: one entry a script, with its time and the ids that ended. Nothing is taken
    # out when a task is replayed: whoever reads it looks whether the task still ended then.
    "ENDED": "ended:",
    # Workers, and what is in their hands.
    "WORKERS": "workers",  # zset: ids by registered_at
    "WORKER": "worker:",  # + id; hash: what is known of it, see rows.py
    "HELD": "held:",  # + worker; set: runs it executes
    "LINGERING": "lingering:",  # + worker; set: runs it has yet to let go of
    # + lane; set: runs that are executing or lingering. Kept only for types with a concurrency
    # limit: when one is set, what is in workers' hands is gone through once.
    "SLOTS": "slots:",
    "BUCKETS": "buckets",  # hash: limited type ('' for everything) -> tokens, and at what time
    # Submissions.
    "IDEMPOTENCY": "idempotency",  # hash: key -> task id, fingerprint, end of its window
    "IDEMPOTENCY_ENDS": "idempotency_ends",  # zset: keys by the end of their window
    # The books.
    "TALLY": "tally",  # hash: lane:level:source:target:label:bucket -> times
    "TALLY_TIME": "tally_time",  # hash: the same -> microseconds together
    "JOURNAL": "journal",  # stream: one entry a script, see books.lua
    "WAKE": "wake",  # a channel, not a key: hints that there is work
}


def checked_prefix(prefix: str) -> str:
    """What all keys of a store begin with."""
    if not _PREFIX.match(prefix):
        raise InvalidInput(
            "A prefix has 1 to 100 characters out of A-Z a-z 0-9 _ . : - only. "
            f"Got {ascii(prefix)[:80]}."
        )
    return f"{{{prefix}}}:"


def lua() -> str:
    """The names as local variables of a script that is given the prefix as its first key."""
    lines = [f"local {name} = KEYS[1] .. '{key}'" for name, key in NAMES.items()]
    return "\n".join(lines)
