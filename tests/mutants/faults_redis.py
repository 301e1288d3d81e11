"""Faults of the scripts of the Redis engine. Valkey runs the same."""

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
        "lib/replays", "if found == 'broken' then", "if found == 'never' then"
    ),
    "a rebound child loses a bond": lua(
        "lib/replays", "pending[#pending + 1] = parent", "pending[1] = parent"
    ),
    "a rerun does not look at the version": lua(
        "rerun", "and sub(record, VERSION, UPDATED_AT - 1) == version then", "then"
    ),
    "a completed run is forgotten when its task runs again": lua(
        "lib/replays", "record_run(id, attempt,", "type(id, attempt,"
    ),
    "the breaker never opens": lua(
        "lib/circuits", "if #recent >= most then", "if #recent < most - BATCH then"
    ),
    "a run that ended takes the slot of the probe": lua("lib/slots", "and not gone[run]", ""),
    "claims keep the aging of before": lua("write_settings", "bump()", ""),
    "one of several parents is enough": lua(
        "lib/dependents",
        "if met and bonds.left > 0 then\n        return",
        "for _, other in ipairs(pending_parents(bonds)) do call('SREM', CHILDREN .. other, id)",
    ),
    "a bond is lost": lua("lib/submission", "for p = 2, #bond do", "for p = 3, #bond do"),
    "what is left of a bond is not written": lua(
        "lib/dependents", "call('HSET', BONDS, id, sub(bonds", "call('HGET', BONDS, sub(bonds"
    ),
    "a doomed child is queued": lua(
        "lib/dependents", "end_by(MOVE_DOOM, id, record)", "make_ready(MOVE_FREE, id, record)"
    ),
    "pruning takes what others need": lua(
        "prune",
        "call('HEXISTS', TASKS, child) == 1 then",
        "call('HEXISTS', TASKS, child) == 2 then",
    ),
    "a parent that had ended is not noted": lua(
        "lib/submission",
        "later('SADD', PARENTS, parent)",
        "if call('HEXISTS', FINISHED, parent) == 0 then later('SADD', PARENTS, parent) end",
    ),
    "what was kept is forgotten": lua(
        "prune", "later('ZADD', KEPT, round, ids[i])", "bytes_of('', 1)"
    ),
    "a claim does not count the attempt": lua(
        "claim", "= next_attempt(record)", "= sub(record, ATTEMPT, WORKER - 1)"
    ),
    "priorities do not matter": lua(
        "lib/claim_order", "if a.effective ~= b.effective then", "if not a.effective then"
    ),
    "nothing ages": lua("lib/claim_order", "if now - ready_at < youth then", "if youth then"),
    "a repeated request gets more": lua("claim", "if last_request == request or", "if"),
    "delays are ignored": lua(
        "lib/submission", "local scheduled = read('>i8', run_at) > now", "local scheduled = false"
    ),
    "expiry is ignored": lua(
        "lib/due", "end_by(MOVE_EXPIRE, ids[i], record)", "later('ZREM', EXPIRING, ids[i])"
    ),
    "a cancelled run frees its slot at once": lua(
        "lib/moves", "move.lingers and not is_dead(worker)", "move.lingers and is_dead(worker)"
    ),
    "tokens are never taken": lua("lib/claim_limits", "left.tokens - left.taken", "left.tokens"),
    "idempotency keys are forgotten": lua(
        "lib/admission", "read('>I8', stored, 33) > now", "read('>I8', stored, 33) < now"
    ),
    "unique tasks are not": lua(
        "lib/admission", "return counts(states, state) and", "return not states and"
    ),
    "a unique key is kept for ever": lua(
        "lib/dependents", "if call('HGET', UNIQUES, key) == ids[i] then", "if not key then"
    ),
    "a replay does not take its key again": lua(
        "replay", "if holds_of and holds_of[i] then", "if holds_of and not record then"
    ),
    "a failed parent counts as done": lua(
        "lib/dependents", "(tolerant == '1' or state == COMPLETED) and 'met' or 'broken'", "'met'"
    ),
    "a child is never released": lua("lib/dependents", "        set_free(id, record)\n", ""),
    "a dead worker keeps its tasks": lua(
        "expired", "#found < most and is_dead(worker) then", "#found > most then"
    ),
    "time limits are ignored": lua(
        "expired", "'-inf', now_text, 'BYSCORE'", "'-inf', 0, 'BYSCORE'"
    ),
    "the reaper takes from the living": lua(
        "bury", "seen_at + lease <= now", "tonumber(seen_at) <= now"
    ),
    "counters forget cancellations": lua(
        "lib/dependents",
        "passage_for(move.verb, place_of(record), worker, transition_of(move, record))",
        "passage_for(move.verb, place_of(record), worker)",
    ),
    "the journal forgets what became due": lua(
        "lib/dependents",
        "add_task(passage_for(move.verb, place_of(record), '', transition_of(move, record)), "
        "run_of(id, record))",
        "count_only(place_of(record), transition_of(move, record))",
    ),
    "pruning takes too much": lua("prune", "now - ARGV[i + 1], function", "now, function"),
}
