-- What decides whether a submission is stored: idempotency keys, unique keys, parents. Nothing is
-- written here, so all of it can still be refused.

-- Who holds an idempotency key: an earlier task within its window, or one of this very batch.
local taken_keys = {}
local function holder_of(key)
    if taken_keys[key] then
        return taken_keys[key]
    end
    local stored = call('HGET', IDEMPOTENCY, key)
    if stored and read('>I8', stored, 33) > now and call('HEXISTS', TASKS, sub(stored, 1, 16)) == 1 then
        return {id = sub(stored, 1, 16), fingerprint = sub(stored, 17, 32)}
    end
end

local function take_key(key, id, fingerprint, window)
    taken_keys[key] = {id = id, fingerprint = fingerprint}
    later('HSET', IDEMPOTENCY, key, id .. fingerprint .. pack('>I8', now + window))
    later('ZADD', IDEMPOTENCY_ENDS, whole(now + window), key)
end

-- Which task makes a unique one a duplicate: see core/uniqueness.py, Hold.blocks(). The second answer
-- is its record, nil for a task of this very batch.
local taken_holds, replaced = {}, {}
local function double_of(hold, period)
    local key, states = sub(hold, 1, 16), read('>H', hold, 17)
    if taken_holds[key] then
        return taken_holds[key]
    end
    local id = call('HGET', UNIQUES, key)
    local record = id and all_records({id})[1]
    if record and counts(states, byte(record)) then
        if period == '' or now - time_of(record, CREATED_AT) < tonumber(period) then
            return id, record
        end
    end
end

-- Whether a holder gives way to a replacement: it is in one of WAITING in core/states.py.
local function waits(record)
    local state = byte(record)
    return state == SCHEDULED or state == QUEUED or state == RETRYING
end

local function take_hold(hold, id)
    taken_holds[sub(hold, 1, 16)] = id
    later('HSET', UNIQUES, sub(hold, 1, 16), id)
    later('HSET', HOLDS, id, hold)
end

-- The state of a task that is stored, as far as parents go: any state that is no end counts as queued. One
-- that was replayed counts as it first ended until all that waited for it then have been told.
local known_states = {}
local function state_of(id)
    if not known_states[id] and call('HEXISTS', TASKS, id) == 1 then
        local first_end, finished = call('HGET', ENDED_PARENTS, id), call('HGET', FINISHED, id)
        known_states[id] = first_end and tonumber(first_end) or finished and byte(finished) or QUEUED
    end
    return known_states[id]
end
