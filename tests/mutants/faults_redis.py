"""Faults of the scripts by which the Redis engine applies moves. Valkey runs the same."""

from __future__ import annotations

from tests.mutants.planting import Break, lua

FAULTS: dict[str, Break] = {
    "apply ignores the attempt": lua(
        "apply",
        "sub(ending, ATTEMPT - LANE + 1) == kind.fence",
        "sub(ending, ATTEMPT - LANE + 5) == sub(kind.fence, 5)",
    ),
    "apply ignores the worker": lua(
        "apply",
        "sub(ending, ATTEMPT - LANE + 1) == kind.fence",
        "sub(ending, ATTEMPT - LANE + 1, ATTEMPT - LANE + 4) == kind.attempt",
    ),
    "apply takes two reports of one run": lua("apply", "or done[id] or", "or"),
    "apply does not record the run": lua(
        "apply", "record_run(id, kind.attempt, kind.worker, started_at, kind.run, problem)", ""
    ),
    "apply forgets the slot that lingers": lua(
        "apply", "later('HSET', LINGERING .. kind.worker, run, place)", ""
    ),
    "apply does not count the run": lua(
        "apply", "sub(item, 1, 2) .. sub(record, RETURNS)", "sub(record, RETRIES)"
    ),
    "apply keeps the error of the run before": lua(
        "apply", "later('HDEL', ERRORS, id)  -- only", "-- only"
    ),
    "apply does not clear the progress": lua("apply", "later('HDEL', PROGRESS, id)", ""),
    "apply resets the place that is kept": lua("apply", "kind.resets and", "due_at and"),
    "apply forgets the expiry": lua("apply", "watch_expiry(id, record)", ""),
    "apply keeps the slot of a run that ended": lua(
        "apply", "passage.slots[#passage.slots + 1] = run", ""
    ),
    "a late report keeps its slot": lua("apply", "if place then", "if place == nil then"),
    "a cancelled run is not recorded": lua(
        "lib/dependents",
        "record_run(id, sub(record, ATTEMPT, WORKER - 1)",
        "type(sub(record, ATTEMPT, WORKER - 1)",
    ),
    "a replay keeps the error": lua("lib/replays", "set_error(id, '')", ""),
    "a replay keeps the expiry": lua(
        "lib/replays", "expired and NONE or", "expired == nil and NONE or"
    ),
    "a type's timeout is not stored": lua(
        "set_timeouts", "holds(record, attempt .. holder(worker))", "not record"
    ),
    "a trail is not kept": lua("lib/moves", "(call('HGET', TRAIL, id) or '') ..", "'' .."),
    "a trail does not tell when a retry was due": lua(
        "apply", "run_entry(record, bytes_of(again, DUE_AT))", "run_entry(record, NONE)"
    ),
    "a worker need not start what it holds": lua(
        "expired", "is_left_unstarted(record, within)", "is_left_unstarted(record, nil)"
    ),
    "what was started is taken away": lua(
        "lib/moves", "within and bytes_of(record, STARTED_AT) == NONE and", "within and"
    ),
    "progress does not start a task": lua(
        "progress", "if bytes_of(record, STARTED_AT) == NONE then", "if not record then"
    ),
    "a cancelled child is revived although its parent failed": lua(
        "rerun", "if found == 'broken' then", "if found == 'never' then"
    ),
    "a rebound child loses a bond": lua(
        "rerun", "pending[#pending + 1] = parent", "pending[1] = parent"
    ),
    "a rerun does not look at the version": lua(
        "rerun", "and sub(record, VERSION, UPDATED_AT - 1) == version then", "then"
    ),
    "a completed run is forgotten when its task runs again": lua(
        "lib/replays", "record_run(id, attempt,", "type(id, attempt,"
    ),
    "a bond that is met is kept, and resolved again": lua(
        "lib/dependents", "call('HSET', BONDS, id, bonds)", "call('HGET', BONDS, id)"
    ),
    "the breaker never opens": lua(
        "lib/circuits", "if #recent >= most then", "if #recent < most - BATCH then"
    ),
    "a run that ended takes the slot of the probe": lua("lib/slots", "and not gone[run]", ""),
    "claims keep the aging of before": lua("write_settings", "bump()", ""),
    "one of several parents is enough": lua(
        "lib/dependents", "if met and #bonds > 1 then", "if met and not bonds then"
    ),
}
