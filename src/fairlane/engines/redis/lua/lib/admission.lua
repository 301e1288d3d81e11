-- Decide whether a submission is stored: idempotency keys, unique keys, parents. Writes are only
-- deferred here, so the whole batch can still be refused.

-- Return the holder of an idempotency key: a task of this batch, or a stored task whose key has not
-- expired.
local taken_keys = {}
local function key_holder(key)
    if taken_keys[key] then
        return taken_keys[key]
    end
    local stored = call('HGET', IDEMPOTENCY, key)
    if stored and read('>I8', stored, 33) > now and call('HEXISTS', TASKS, sub(stored, 1, 16)) == 1 then
        return {id = sub(stored, 1, 16), fingerprint = sub(stored, 17, 32)}
    end
end

-- Give an idempotency key to a new task.
local function take_key(key, id, fingerprint, window)
    taken_keys[key] = {id = id, fingerprint = fingerprint}
    later('HSET', IDEMPOTENCY, key, id .. fingerprint .. pack('>I8', now + window))
    later('ZADD', IDEMPOTENCY_ENDS, whole(now + window), key)
end

-- Return whether a holder makes a unique task a duplicate. `period` is '' for none.
-- Twin of core/uniqueness.py, Hold.blocks().
local function blocks(states, period, state, created_at)
    return counts(states, state) and (period == '' or now - created_at < tonumber(period))
end

-- Return the task that makes a unique task a duplicate, and its record (nil for a task of this batch).
local taken_holds, replaced = {}, {}
local function duplicate_of(hold, period)
    local key, states = sub(hold, 1, 16), read('>H', hold, 17)
    if taken_holds[key] then
        return taken_holds[key]
    end
    local id = call('HGET', UNIQUES, key)
    local record = id and all_records({id})[1]
    if record and blocks(states, period, byte(record), time_of(record, CREATED_AT)) then
        return id, record
    end
end

-- Return whether a holder can be replaced. Twin of core/uniqueness.py, Hold.replaces().
local function is_waiting(record)
    local state = byte(record)
    return state == SCHEDULED or state == QUEUED or state == RETRYING
end

-- Give a unique key to a new task.
local function take_hold(hold, id)
    taken_holds[sub(hold, 1, 16)] = id
    later('HSET', UNIQUES, sub(hold, 1, 16), id)
    later('HSET', HOLDS, id, hold)
end

-- Return the state of a stored task as a parent; every state that is not an end counts as queued. A
-- replayed task keeps its first end state until all dependents of that end are resolved.
local known_states = {}
local function parent_state(id)
    if not known_states[id] and call('HEXISTS', TASKS, id) == 1 then
        local first_end, finished = call('HGET', ENDED_PARENTS, id), call('HGET', FINISHED, id)
        known_states[id] = first_end and tonumber(first_end) or finished and byte(finished) or QUEUED
    end
    return known_states[id]
end
