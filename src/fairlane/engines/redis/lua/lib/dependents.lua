-- Tasks end, and with them what hangs on their ends: bonds and unique keys.

-- A task has ended; `record` is the new one, with the result behind it.
local ended_records, ended_by_state = {'HSET', FINISHED}, {}
local function finish(id, record, state)
    local next = #ended_records + 1
    ended_records[next], ended_records[next + 1] = id, record
    local ids = ended_by_state[state]
    if not ids then
        ids = {}
        ended_by_state[state] = ids
    end
    ids[#ids + 1] = id
end

-- A task that waits or runs ends by a move.
local function end_by(move, id, record)
    local worker, run = worker_of(record), run_of(id, record)
    if byte(record) == EXECUTING then
        let_go(move, id, record, run, worker)
        record_run(id, sub(record, ATTEMPT, WORKER - 1), worker, bytes_of(record, STARTED_AT), move.run, move.error)
    else
        withdraw(id, record)
    end
    local times = bytes_of(record, CLAIMED_AT) .. bytes_of(record, STARTED_AT)
    finish(id, beginning(record, move.state) .. NONE .. times .. sub(record, READY_AT), move.state)
    set_error(id, move.error)
    note(passage(move.verb, place_of(record), worker, change_of(move, record)), run)
end

-- How many bonds this script may still resolve, and how many tasks became ready by it.
local bonds_left, freed = BATCH, 0

-- No parent is left: a task is ready, or waits for its time like any other.
local function set_free(id, record)
    if time_of(record, RUN_AT) > now then
        local due = sub(record, 1, DUE_AT - 1) .. bytes_of(record, RUN_AT) .. sub(record, CLAIMED_AT)
        later('HSET', LIVE, id, due)
        later('ZADD', DUE, whole(time_of(record, RUN_AT)), id)
    else
        local ready = moved(record, MOVE_FREE.state, NONE, NONE, NONE, stamp .. sub(record, RUN_AT))
        later('HSET', LIVE, id, ready)
        enqueue(id, ready)
        note(passage(MOVE_FREE.verb, place_of(record), '', change_of(MOVE_FREE, record)), run_of(id, record))
        freed = freed + 1
    end
end

-- The bond of a child without one of its parents.
local function without(bond, parent)
    local at = string.find(bond, parent, 2, true)
    while at % 16 ~= 2 do  -- by chance, across two ids
        at = string.find(bond, parent, at + 1, true)
    end
    return sub(bond, 1, at - 1) .. sub(bond, at + 16)
end

-- A parent ended in a state: what that means for a child is said by core/dependencies.py, bond().
local function resolve(id, parent, state)
    local bond = without(call('HGET', BONDS, id), parent)
    local met = state == COMPLETED or sub(bond, 1, 1) == '1'
    if met and #bond > 1 then
        call('HSET', BONDS, id, bond)
        return
    end
    call('HDEL', BONDS, id)
    local record = live_records({id})[1]
    if met then
        set_free(id, record)
        return
    end
    for at = 2, #bond, 16 do
        call('SREM', CHILDREN .. sub(bond, at, at + 15), id)
    end
    end_by(MOVE_DOOM, id, record)
end

-- Resolve the bonds to a parent, as far as this script may; true when none is left.
local function resolve_all(parent, state)
    local children = CHILDREN .. parent
    local count = call('SCARD', children)
    if count > 0 and bonds_left > 0 then
        for _, id in ipairs(call('SPOP', children, bonds_left)) do
            resolve(id, parent, state)
            count, bonds_left = count - 1, bonds_left - 1
        end
    end
    return count == 0
end

-- What depends on tasks that ended in this script, and on tasks that were doomed by it in turn.
-- Claims see to what is too much.
local function resolve_ended()
    if call('EXISTS', BONDS) == 0 then
        return
    end
    write()
    ended_by_state[CANCELLED] = ended_by_state[CANCELLED] or {}  -- where the doomed join in
    local looked_at, more = {}, true
    while more do
        more = false
        for state, ids in pairs(ended_by_state) do
            local known = #ids  -- it grows meanwhile
            for i = (looked_at[state] or 0) + 1, known do
                more = true
                if not resolve_all(ids[i], state) then
                    call('HSETNX', ENDED_PARENTS, ids[i], state)
                end
            end
            looked_at[state] = known
        end
    end
    write()
end

-- What earlier scripts could not see to; true when there is still something left.
local function resolve_earlier()
    if call('EXISTS', ENDED_PARENTS) == 0 then
        return false
    end
    local parents = call('HRANDFIELD', ENDED_PARENTS, BATCH, 'WITHVALUES')
    for i = 1, #parents, 2 do
        if resolve_all(parents[i], tonumber(parents[i + 1])) then
            call('HDEL', ENDED_PARENTS, parents[i])
        end
    end
    write()
    return call('EXISTS', ENDED_PARENTS) == 1
end

-- Whether a state is in a set of them, stored as core/uniqueness.py has it: counts().
local function counts(states, state)
    return math.floor(states / 2 ^ state) % 2 == 1
end

-- A unique key is given up by a holder whose end does not count.
local function give_up_keys(ids, state)
    for i, hold in ipairs(call('HMGET', HOLDS, unpack(ids))) do
        if hold and not counts(read('>H', hold, 17), state) then
            local key = sub(hold, 1, 16)
            if call('HGET', UNIQUES, key) == ids[i] then
                call('HDEL', UNIQUES, key)
            end
        end
    end
end

-- What ended in one state at once is one entry, of which prune can do with a batch at a time.
local function tell_ended(ids, state)
    for from = 1, #ids, BATCH do
        local upto = math.min(from + BATCH - 1, #ids)
        call('XADD', ENDED .. state, '*', 'at', now_text, 'ids', table.concat(ids, '', from, upto))
    end
    if state ~= COMPLETED then
        local by_id = {'ZADD', ENDED_BADLY .. state}
        for _, id in ipairs(ids) do
            by_id[#by_id + 1] = '0'
            by_id[#by_id + 1] = id
        end
        call(unpack(by_id))
    end
end

-- Everything that follows from the ends of tasks. Nothing may be refused from here on.
local function release_dependents()
    write()
    if not next(ended_by_state) then
        return
    end
    resolve_ended()
    local any_holds = call('EXISTS', HOLDS) == 1
    call(unpack(ended_records))
    for state, ids in pairs(ended_by_state) do
        if #ids > 0 then
            call('HDEL', LIVE, unpack(ids))
            tell_ended(ids, state)
            if any_holds then
                give_up_keys(ids, state)
            end
        end
    end
    ended_records, ended_by_state = {'HSET', FINISHED}, {}
end
