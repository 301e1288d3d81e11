#!lua flags=allow-oom
-- needs: record accounting moves
-- Replay tasks.
-- ARGV: the states that can be replayed and the terminal states (one byte each); the move: verb, state,
--       retry_count ('' to keep it), returns, level ('' to keep it); the label under which a change of
--       level is counted; then task ids. Returns pairs in their order: 1 if replayed or 0, the state
--       before (0 if there is no task).
local allowed, terminal = ARGV[1], ARGV[2]
local move = {verb = ARGV[3], state = tonumber(ARGV[4]), label = ''}
local retries_after, returns_after, level, moved_label = ARGV[5], pack('>H', ARGV[6]), ARGV[7], ARGV[8]
local ids, answers, ready = {unpack(ARGV, 9)}, {}, false

-- Return the record of a task that is queued again.
local function requeued(record)
    local retries = retries_after == '' and sub(record, RETRIES, RETURNS - 1) or pack('>H', retries_after)
    local expired = time_of(record, EXPIRES_AT) <= now
    local rest = stamp .. sub(record, RUN_AT, RETRIES - 1) .. retries .. returns_after .. bytes_of(record, TIMEOUT)
        .. (expired and NONE or bytes_of(record, EXPIRES_AT)) .. sub(record, LANE, LEVEL - 1)
        .. (level == '' and sub(record, LEVEL, LEVEL) or char(level)) .. sub(record, ATTEMPT, WORKER - 1) .. UNHELD
    return moved(record, move.state, NONE, NONE, NONE, rest)
end

-- Count and journal a replay. Twin of core/tally.py, keys_of(): a task that changes its level leaves one
-- level and enters another.
local function account_for(id, old, new)
    local from, to, transition = place_of(old), place_of(new), transition_of(move, old)
    if from ~= to then
        count_only(from, byte(old) .. ':' .. NOWHERE .. ':' .. moved_label .. ':-1')
        transition = NOWHERE .. ':' .. move.state .. ':' .. moved_label .. ':-1'
    end
    add_task(passage_for(move.verb, to, '', transition), run_of(id, new))
end

local holds_of = #ids > 0 and call('EXISTS', HOLDS) == 1 and call('HMGET', HOLDS, unpack(ids))
for i, record in ipairs(all_records(ids)) do
    local id = ids[i]
    local state = record and byte(record)
    if record and string.find(allowed, char(state), 1, true) then
        local ends = string.find(terminal, char(state), 1, true)
        if ends then
            later('HDEL', FINISHED, id)
            later('ZREM', ENDED_BADLY .. state, id)
        else
            leave(id, record)
        end
        local new = requeued(record)
        local run = bytes_of(record, CLAIMED_AT) ~= NONE and run_entry(record, NONE) or ''
        local before = pack('>i8', -(TRAIL_STATES * read('>I4', record, VERSION) + state))
        add_to_trail(id, run .. before .. bytes_of(record, READY_AT)
            .. (ends and bytes_of(record, UPDATED_AT) or NONE) .. stamp)
        later('HSET', LIVE, id, new)
        set_error(id, '')
        later('HDEL', PROGRESS, id)
        enqueue(id, new)
        watch_expiry(id, new)
        account_for(id, record, new)
        if holds_of and holds_of[i] then
            call('HSETNX', UNIQUES, sub(holds_of[i], 1, 16), id)
        end
        ready = true
        answers[i] = {1, state}
    else
        answers[i] = {0, state or 0}
    end
end
write()
update_streams()
post()
if ready then
    wake()
end
return answers
