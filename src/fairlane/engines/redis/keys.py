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
    "INDEX": "index",  # zset: ids of all tasks, all scored 0, so that they are in their own order
    # + state; zset: the same of tasks that ended otherwise than completed, which are few
    "ENDED_BADLY": "ended_badly:",
    # Where tasks stand. A run is a task's id and its attempt: 20 bytes.
    "STREAMS": "streams",  # set: lane:level of every queue that is not empty
    "QUEUE": "queue:",  # + lane:level; zset: ids by ready_at
    "DUE": "due",  # zset: ids of scheduled and retrying tasks, by their time
    "EXPIRING": "expiring",  # zset: ids of waiting tasks that have an expiry, by it
    "DEADLINES": "deadlines",  # zset: ids of started tasks that have a time limit, by its end
    # + state; stream: one entry a script, with its time and the ids that ended. Nothing is taken
    # out when a task is replayed: whoever reads it looks whether the task still ended then.
    "ENDED": "ended:",
    # Tasks that wait for others, and those others. There is none of this without a bond.
    "BONDS": "bonds",  # hash: id of a child -> '1' if tolerant or '0', ids of parents yet to end
    "CHILDREN": "children:",  # + id of a parent; set: ids of children that wait for it
    "ENDED_PARENTS": "ended_parents",  # hash: id -> the state it ended in, its children still bound
    # Unique tasks.
    "UNIQUES": "uniques",  # hash: unique key -> id of the task that holds it
    "HOLDS": "holds",  # hash: id -> its unique key, and in two bytes the states that count
    # Workers, and what is in their hands.
    "WORKERS": "workers",  # zset: ids by registered_at
    "DEAD_WORKERS": "dead_workers",  # zset: ids of those that are dead, by when they were last seen
    "WORKER_HASH": "worker:",  # + id; hash: what is known of it, see rows.py
    "HELD": "held:",  # + worker; set: runs it executes
    # + worker; hash: runs it has yet to let go of -> lane and level (the task may be gone)
    "LINGERING": "lingering:",
    # + lane; set: runs that are executing or lingering. Kept only for types with a concurrency
    # limit or an open circuit: at first, what is in workers' hands is gone through once.
    "SLOTS": "slots:",
    "BUCKETS": "buckets",  # hash: limited type ('' for everything) -> tokens, and at what time
    "CIRCUITS": "circuits",  # hash: type that has a breaker -> how it fares (JSON, see circuits.py)
    # Submissions.
    "IDEMPOTENCY": "idempotency",  # hash: key -> task id, fingerprint, end of its window
    "IDEMPOTENCY_ENDS": "idempotency_ends",  # zset: keys by the end of their window
    # The books.
    "TALLY": "tally",  # hash: lane:level:source:target:label:bucket -> times
    "TALLY_TIME": "tally_time",  # hash: the same -> microseconds together
    "JOURNAL": "journal",  # stream: one entry a script, numbered 0-1, 0-2, …, see books.lua
    # Documents (tokens, schedules, roles, samples, the audit log): + kind each, see documents.py.
    "DOCUMENTS": "documents:",  # hash: id -> document
    "DOCUMENT_TIMES": "document_times:",  # zset: ids by `at`
    "DOCUMENT_ENDS": "document_ends:",  # zset: ids of those that expire, by that time
    "DOCUMENT_ALIASES": "document_aliases:",  # hash: alias -> id
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
