-- Have tasks run again, as somebody asked: replay and rerun. A move is a table of what the core sends: verb,
-- state, retries and returns (retry_count '' to keep it), level ('' to keep it), moved_label (under which a
-- change of level is counted).

-- Return the record of a task that runs again: it is queued, or waits for its parents.
local function revived(move, record)
    local retries = move.retries == '' and sub(record, RETRIES, RETURNS - 1) or pack('>H', move.retries)
    local expired = time_of(record, EXPIRES_AT) <= now
    local run_at = move.state == QUEUED and bytes_of(record, RUN_AT) or stamp
    local rest = stamp .. run_at .. bytes_of(record, CREATED_AT) .. retries .. pack('>H', move.returns)
        .. bytes_of(record, TIMEOUT) .. (expired and NONE or bytes_of(record, EXPIRES_AT)) .. sub(record, LANE, LEVEL - 1)
        .. (move.level == '' and sub(record, LEVEL, LEVEL) or char(move.level)) .. sub(record, ATTEMPT, WORKER - 1) .. UNHELD
    return moved(record, move.state, NONE, NONE, NONE, rest)
end

-- Count and journal it. Twin of core/tally.py, keys_of(): a task that changes its level leaves one level and
-- enters another.
local function account_for(move, id, old, new)
    local from, to, transition = place_of(old), place_of(new), transition_of(move, old)
    if from ~= to then
        count_only(from, byte(old) .. ':' .. NOWHERE .. ':' .. move.moved_label .. ':-1')
        transition = NOWHERE .. ':' .. move.state .. ':' .. move.moved_label .. ':-1'
    end
    add_task(passage_for(move.verb, to, '', transition), run_of(id, new))
end

-- Have a task run again. `ends`: it has ended.
local function run_again(move, id, record, ends)
    local state = byte(record)
    if not ends then
        leave(id, record)
    else
        later('HDEL', FINISHED, id)
        if state ~= COMPLETED then
            later('ZREM', ENDED_BADLY .. state, id)
        else  -- the record, which goes now, was that of the run as well
            local attempt, ended_at = sub(record, ATTEMPT, WORKER - 1), bytes_of(record, UPDATED_AT)
            record_run(id, attempt, worker_of(record), bytes_of(record, STARTED_AT), 'completed', '', ended_at)
        end
    end
    local new = revived(move, record)
    local run = bytes_of(record, CLAIMED_AT) ~= NONE and run_entry(record, NONE) or ''
    local before = pack('>i8', -(TRAIL_STATES * read('>I4', record, VERSION) + state))
    add_to_trail(id, run .. before .. bytes_of(record, READY_AT)
        .. (ends and bytes_of(record, UPDATED_AT) or NONE) .. pack('>i8', move.state == QUEUED and now or -now))
    later('HSET', LIVE, id, new)
    set_error(id, '')
    later('HDEL', PROGRESS, id)
    if move.state == QUEUED then
        enqueue(id, new)
    end
    watch_expiry(id, new)
    account_for(move, id, record, new)
end

-- Return what a task is still to wait for, or nil if a parent did not complete. One that has been deleted
-- counts as such. `state_of` returns the state of a parent. Twin of core/dependencies.py, dependency_on_all().
local function pending_of(parents, tolerant, state_of)
    local pending = {}
    for at = 1, #parents, 16 do
        local parent = sub(parents, at, at + 15)
        local found = dependency_on(state_of(parent) or FAILED, tolerant)
        if found == 'broken' then
            return nil
        elseif found == 'pending' then
            pending[#pending + 1] = parent
        end
    end
    return pending
end
