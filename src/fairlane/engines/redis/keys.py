"""Every key of a store, defined in one place for Python and Lua.

All keys begin with the store's prefix in braces, `{fairlane}:`. The text in braces decides on which
node Redis Cluster puts a key, so a store is on one node, and a script can use all of its keys.
"""

from __future__ import annotations

import re

from fairlane.core.errors import InvalidInput

_PREFIX = re.compile(r"[A-Za-z0-9_.:\-]{1,100}\Z")

NAMES = {
    # The store itself.
    # hash: format, catalogue (a version), last_lane (its number), prunes (their number, while tasks
    # depend on others), clock_offset (tests only)
    "META": "meta",
    "CONTROLS": "controls",  # hash: the settings of operators, see context.py
    "LANES": "lanes",  # zset: JSON of (queue, type, capabilities), scored by the lane's id
    # Tasks. Ids are 16 raw bytes; record.py defines a record.
    "TASKS": "tasks",  # hash: id -> its record as submitted, then its fixed part
    "LIVE": "live",  # hash: id -> its record, once it has moved since its submission
    "FINISHED": "finished",  # hash: id -> its record, then its result
    "ERRORS": "errors",  # hash: id -> the last error, as JSON
    "PROGRESS": "progress",  # hash: id -> time and last progress report, as JSON
    "RUNS": "runs",  # hash: id -> its runs that did not complete, one after another
    "TRAIL": "trail",  # hash: id -> times of its earlier runs and replays, see core/trail.py
    "INDEX": "index",  # zset: ids of all tasks, all with score 0, so that they are ordered by id
    # + state; zset: the same for tasks that ended in another state than completed
    "ENDED_BADLY": "ended_badly:",
    # Queues and times. A run is a task's id and its attempt: 20 bytes.
    "STREAMS": "streams",  # set: lane:level of every queue that is not empty
    "QUEUE": "queue:",  # + lane:level; zset: ids by ready_at
    "DUE": "due:",  # + lane:level; zset: ids of scheduled and retrying tasks by due_at
    "DUE_STREAMS": "due_streams",  # zset: lane:level of these sets, by their first due_at
    "EXPIRING": "expiring",  # zset: ids of waiting tasks that expire, by expires_at
    "DEADLINES": "deadlines",  # zset: ids of started tasks with a timeout, by its end
    # + state; stream: one entry per script, with its time and the ids that ended. A replay does not
    # remove an id: the reader checks that the task still has this end.
    "ENDED": "ended:",
    # Dependencies. These keys exist only while a task waits for its parents.
    "BONDS": "bonds",  # hash: id of a child -> '1' if tolerant, else '0'; pending parents
    "CHILDREN": "children:",  # + id of a parent; set: ids of children that wait for it
    "ENDED_PARENTS": "ended_parents",  # hash: id -> its end state, while children still wait for it
    # Who depends on whom, for as long as the parent is there: prune keeps a task while one that
    # depends on it has not ended.
    "PARENTS": "parents",  # set: ids of tasks on which others depend
    "DEPENDENTS": "dependents:",  # + id of a parent; set: ids of tasks that depend on it
    "KEPT": "kept",  # zset: ids that prune kept and took off the streams of ends, by its last round
    # Unique tasks.
    "UNIQUES": "uniques",  # hash: unique key -> id of the task that holds it
    "HOLDS": "holds",  # hash: id -> its unique key, then the states that count (2 bytes)
    # Workers, and the tasks that they hold.
    "WORKERS": "workers",  # zset: ids by registered_at
    "DEAD_WORKERS": "dead_workers",  # zset: ids of dead workers by seen_at
    "WORKER_HASH": "worker:",  # + id; hash: its fields, see rows.py
    "HELD": "held:",  # + worker; set: runs that it executes
    # + worker; hash: runs whose slot lingers -> lane and level (the task may be deleted)
    "LINGERING": "lingering:",
    # + lane; set: runs that are executing or lingering. Kept only for types with a concurrency
    # limit or an open circuit; the script that sets either of them fills the set.
    "SLOTS": "slots:",
    "BUCKETS": "buckets",  # hash: limited type ('' for everything) -> tokens and time of the refill
    "CIRCUITS": "circuits",  # hash: type with a breaker -> its circuit (JSON)
    # Submissions.
    "IDEMPOTENCY": "idempotency",  # hash: key -> task id, fingerprint, end of its window
    "IDEMPOTENCY_ENDS": "idempotency_ends",  # zset: keys by the end of their window
    # Counters and the journal.
    "TALLY": "tally",  # hash: lane:level:source:target:label:bucket -> count
    "TALLY_TIME": "tally_time",  # hash: the same -> total microseconds
    "JOURNAL": "journal",  # stream: one entry per script: 0-1, 0-2, …; see accounting.lua
    # Documents (tokens, schedules, settings, roles, samples, audit): + kind each, see documents.py.
    "DOCUMENTS": "documents:",  # hash: id -> document
    "DOCUMENT_TIMES": "document_times:",  # zset: ids by `at`
    "DOCUMENT_ENDS": "document_ends:",  # zset: ids of those that expire, by that time
    "DOCUMENT_ALIASES": "document_aliases:",  # hash: alias -> id
    "WAKE": "wake",  # a channel, not a key: hints that there is work
}


def checked_prefix(prefix: str) -> str:
    """Return the text with which all keys of a store begin."""
    if not _PREFIX.match(prefix):
        raise InvalidInput(
            "A prefix has 1 to 100 of the characters A-Z a-z 0-9 _ . : -. "
            f"Got {ascii(prefix)[:80]}."
        )
    return f"{{{prefix}}}:"
