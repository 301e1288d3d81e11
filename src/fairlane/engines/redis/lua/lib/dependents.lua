-- End tasks, and do what follows from their ends: release dependents and unique keys.
--
-- A bond is what a dependent waits for: its tolerance and the ids of its parents that have not ended.

-- Note that a task ended. `record` is the new record, followed by the result.
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

-- Return whether a move leads from the state of a record: moves are checked where they are applied, too.
local function leads_from(move, record)
    return string.find(move.sources, sub(record, 1, 1), 1, true)
end

-- Apply a move that ends a waiting or executing task.
local function end_by(move, id, record)
    assert(leads_from(move, record), move.verb)
    local worker, run = worker_of(record), run_of(id, record)
    if byte(record) == EXECUTING then
        take_from_worker(move, id, record, run, worker)
        record_run(id, sub(record, ATTEMPT, WORKER - 1), worker, bytes_of(record, STARTED_AT), move.run, move.error)
    else
        leave(id, record)
    end
    local times = bytes_of(record, CLAIMED_AT) .. bytes_of(record, STARTED_AT)
    finish(id, beginning(record, move.state) .. NONE .. times .. sub(record, READY_AT), move.state)
    set_error(id, move.error)
    add_task(passage_for(move.verb, place_of(record), worker, transition_of(move, record)), run)
end

-- Apply a move that queues a waiting task.
local function make_ready(move, id, record)
    assert(leads_from(move, record), move.verb)
    local ready_at = move.resets and stamp or bytes_of(record, READY_AT)
    local ready = moved(record, move.state, NONE, NONE, NONE, ready_at .. sub(record, RUN_AT))
    later('HSET', LIVE, id, ready)
    enqueue(id, ready)
    add_task(passage_for(move.verb, place_of(record), '', transition_of(move, record)), run_of(id, record))
end

-- The number of bonds that this script may still resolve, and of tasks that it has made ready.
local bonds_left, freed = BATCH, 0

-- Let a task without pending parents go on: queue it, or let it wait until it is due.
local function set_free(id, record)
    if time_of(record, RUN_AT) > now then
        local due = sub(record, 1, DUE_AT - 1) .. bytes_of(record, RUN_AT) .. sub(record, CLAIMED_AT)
        later('HSET', LIVE, id, due)
        wait_until_due(id, due)
    else
        make_ready(MOVE_FREE, id, record)
        freed = freed + 1
    end
end

-- Return what the state of a parent means for a dependent. `tolerant` is '1' or '0', as it is stored.
-- Twin of core/dependencies.py, dependency_on().
local function dependency_on(state, tolerant)
    if state == SCHEDULED or state == QUEUED or state == EXECUTING or state == RETRYING then
        return 'pending'
    end
    return (tolerant == '1' or state == COMPLETED) and 'met' or 'broken'
end

-- The bonds of dependents that this script has looked at, by their ids: as stored, which parents have
-- ended since, and how many have not. A bond has up to 16 kB, and many of its parents may end in a
-- script: it is written once.
local open_bonds = {}
local function bonds_of(id)
    local found = open_bonds[id]
    if not found then
        local stored = call('HGET', BONDS, id)
        found = {stored = stored, ended = {}, left = (#stored - 1) / 16}
        open_bonds[id] = found
    end
    return found
end

-- Return the parents in a bond that have not ended.
local function pending_parents(bonds)
    local pending = {}
    for at = 2, #bonds.stored, 16 do
        local parent = sub(bonds.stored, at, at + 15)
        if not bonds.ended[parent] then
            pending[#pending + 1] = parent
        end
    end
    return pending
end

-- Write what is left of the bonds that have changed.
local function write_bonds()
    for id, bonds in pairs(open_bonds) do
        call('HSET', BONDS, id, sub(bonds.stored, 1, 1) .. table.concat(pending_parents(bonds)))
    end
    open_bonds = {}
end

-- Free or doom a dependent whose parent ended in a state, or let it wait for its other parents.
local function resolve_dependent(id, parent, state)
    local bonds = bonds_of(id)
    bonds.ended[parent] = true
    bonds.left = bonds.left - 1
    local met = dependency_on(state, sub(bonds.stored, 1, 1)) == 'met'
    if met and bonds.left > 0 then
        return
    end
    open_bonds[id] = nil
    call('HDEL', BONDS, id)
    local record = live_records({id})[1]
    if met then
        set_free(id, record)
        return
    end
    for _, other in ipairs(pending_parents(bonds)) do
        call('SREM', CHILDREN .. other, id)
    end
    end_by(MOVE_DOOM, id, record)
end

-- Resolve the dependents of a parent, up to the limit of this script. Return true if none is left.
local function resolve_dependents(parent, state)
    local children = CHILDREN .. parent
    local count = call('SCARD', children)
    if count > 0 and bonds_left > 0 then
        for _, id in ipairs(call('SPOP', children, bonds_left)) do
            resolve_dependent(id, parent, state)
            count, bonds_left = count - 1, bonds_left - 1
        end
    end
    return count == 0
end

-- Resolve the dependents of tasks that ended in this script, and of the tasks that this dooms in turn.
-- Later claims resolve what exceeds the limit.
local function resolve_ended()
    if call('EXISTS', BONDS) == 0 then
        return
    end
    write()
    ended_by_state[CANCELLED] = ended_by_state[CANCELLED] or {}  -- doomed tasks are added here
    local looked_at, more = {}, true
    while more do
        more = false
        for state, ids in pairs(ended_by_state) do
            local known = #ids  -- the list grows during the loop
            for i = (looked_at[state] or 0) + 1, known do
                more = true
                if not resolve_dependents(ids[i], state) then
                    call('HSETNX', ENDED_PARENTS, ids[i], state)
                end
            end
            looked_at[state] = known
        end
    end
    write_bonds()
    write()
end

-- Resolve dependents that earlier scripts have left over. Return true if some are still left.
local function resolve_left_over()
    if call('EXISTS', ENDED_PARENTS) == 0 then
        return false
    end
    local parents = call('HRANDFIELD', ENDED_PARENTS, BATCH, 'WITHVALUES')
    for i = 1, #parents, 2 do
        if resolve_dependents(parents[i], tonumber(parents[i + 1])) then
            call('HDEL', ENDED_PARENTS, parents[i])
        end
    end
    write_bonds()
    write()
    return call('EXISTS', ENDED_PARENTS) == 1
end

-- Return whether a stored set of states contains a state. Twin of core/uniqueness.py, counts().
local function counts(states, state)
    return math.floor(states / 2 ^ state) % 2 == 1
end

-- Release the unique keys of tasks that ended in a state that does not count.
local function release_unique_keys(ids, state)
    for i, hold in ipairs(call('HMGET', HOLDS, unpack(ids))) do
        if hold and not counts(read('>H', hold, 17), state) then
            local key = sub(hold, 1, 16)
            if call('HGET', UNIQUES, key) == ids[i] then
                call('HDEL', UNIQUES, key)
            end
        end
    end
end

-- List tasks that ended in one state: one stream entry per batch, so that prune can delete it at once.
local function list_ended(ids, state)
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

-- Write what follows from the ends of tasks. The script must not refuse anything after this.
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
            list_ended(ids, state)
            if any_holds then
                release_unique_keys(ids, state)
            end
        end
    end
    ended_records, ended_by_state = {'HSET', FINISHED}, {}
end
