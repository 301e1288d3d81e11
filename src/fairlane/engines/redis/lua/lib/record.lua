-- Records: see record.py for their layout.
local NONE = string.rep('\0', 8)
local UNHELD = '\0'  -- a worker's id of no length

local function time_of(record, field)
    return (read('>i8', record, field))
end

local function bytes_of(record, field)
    return sub(record, field, field + 7)
end

-- Lane and level in three bytes: where a task queues up.
local function place_of(record)
    return sub(record, LANE, LEVEL)
end

-- The same as text, which names its queue.
local stream_names = {}
local function stream_of(place)
    local name = stream_names[place]
    if not name then
        local lane, level = read('>HB', place)
        name = lane .. ':' .. level
        stream_names[place] = name
    end
    return name
end

-- The set of runs that take up the lane's slots.
local slot_names = {}
local function slots_of(place)
    local name = slot_names[place]
    if not name then
        name = SLOTS .. read('>H', place)
        slot_names[place] = name
    end
    return name
end

local function run_of(id, record)
    return id .. sub(record, ATTEMPT, WORKER - 1)
end

-- The worker's id as it stands in a record: its length, then itself.
local function holder(worker)
    return char(#worker) .. worker
end

local function worker_of(record)
    return sub(record, WORKER + 1, WORKER + byte(record, WORKER))
end

-- How a record begins after a transition: state, version, updated_at. The tasks of a batch have few
-- different versions, so what was made once is used again.
local beginnings = {}  -- by state, then by the version before
local function beginning(record, state)
    local version = sub(record, VERSION, UPDATED_AT - 1)
    local of_state = beginnings[state] or {}
    local found = of_state[version]
    if not found then
        found = char(state) .. pack('>I4', read('>I4', version) + 1) .. stamp
        of_state[version] = found
        beginnings[state] = of_state
    end
    return found
end

-- The record after a transition. `rest` and `tail` are everything from READY_AT on.
local function moved(record, state, due_at, claimed_at, started_at, rest, tail)
    return beginning(record, state) .. due_at .. claimed_at .. started_at .. rest .. (tail or '')
end

-- What the next attempt is called, in four bytes.
local attempts = {}
local function next_attempt(record)
    local last = sub(record, ATTEMPT, WORKER - 1)
    local found = attempts[last]
    if not found then
        found = pack('>I4', read('>I4', last) + 1)
        attempts[last] = found
    end
    return found
end

-- The records of tasks that have not ended; false where there is none. A task that has not moved
-- since its submission has its record in front of what was submitted.
local function live_records(ids)
    if #ids == 0 then
        return {}
    end
    local records = call('HMGET', LIVE, unpack(ids))
    local tasks = call('HMGET', TASKS, unpack(ids))
    for i = 1, #ids do
        records[i] = records[i] or (tasks[i] and sub(tasks[i], 1, HEAD))
    end
    return records, tasks
end

-- The records of tasks wherever they stand; false for those that do not exist.
local function all_records(ids)
    local records = live_records(ids)
    local finished = #ids > 0 and call('HMGET', FINISHED, unpack(ids))
    for i = 1, #ids do
        records[i] = finished[i] or records[i]
    end
    return records
end

-- Whether a worker executes a task as this attempt. `fence`: attempt, length of its id, its id.
local function holds(record, fence)
    return record and byte(record) == EXECUTING and sub(record, ATTEMPT, ATTEMPT + #fence - 1) == fence
end
