-- Read and build records; see record.py for their layout.
local NONE = string.rep('\0', 8)
local UNHELD = '\0'  -- an empty worker id

-- Return a time field as a number.
local function time_of(record, field)
    return (read('>i8', record, field))
end

-- Return a field of 8 bytes as stored.
local function bytes_of(record, field)
    return sub(record, field, field + 7)
end

-- Return lane and level in three bytes: the place where a task queues.
local function place_of(record)
    return sub(record, LANE, LEVEL)
end

-- Return the name of the stream of a place: lane:level.
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

-- Return the key of the set of runs that take slots of the lane.
local slot_names = {}
local function slots_of(place)
    local name = slot_names[place]
    if not name then
        name = SLOTS .. read('>H', place)
        slot_names[place] = name
    end
    return name
end

-- Return a task's id as text.
local function text_of(id)
    local digits = string.gsub(id, '.', function(each)
        return string.format('%02x', byte(each))
    end)
    return table.concat({sub(digits, 1, 8), sub(digits, 9, 12), sub(digits, 13, 16), sub(digits, 17, 20), sub(digits, 21)}, '-')
end

-- Return the run of a task: its id and its attempt.
local function run_of(id, record)
    return id .. sub(record, ATTEMPT, WORKER - 1)
end

-- Return a worker's id as a record stores it: its length, then the id.
local function holder(worker)
    return char(#worker) .. worker
end

-- Return the id of the worker that holds a task.
local function worker_of(record)
    return sub(record, WORKER + 1, WORKER + byte(record, WORKER))
end

-- Return the first fields of a record after a transition: state, version, updated_at. The tasks of a
-- batch have few different versions, so results are cached.
local beginnings = {}  -- by state, then by the previous version
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

-- Return the record after a transition. `rest` is everything from READY_AT on.
local function moved(record, state, due_at, claimed_at, started_at, rest)
    return beginning(record, state) .. due_at .. claimed_at .. started_at .. rest
end

-- Return the number of the next attempt, in four bytes.
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

-- Return the records of tasks that have not ended (false where there is none), and the tasks as
-- submitted. A task that has not moved since its submission has its record at the start of the latter.
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

-- Return the records of tasks in any state; false for those that do not exist.
local function all_records(ids)
    local records = live_records(ids)
    local finished = #ids > 0 and call('HMGET', FINISHED, unpack(ids))
    for i = 1, #ids do
        records[i] = finished[i] or records[i]
    end
    return records
end

-- Return the record of a task that began to run at a time, and watch its time limit from then on.
local function started(id, record, began)
    local timeout = read('>d', record, TIMEOUT)
    if timeout > 0 then
        later('ZADD', DEADLINES, whole(began + timeout * 1000000), id)
    end
    return sub(record, 1, STARTED_AT - 1) .. pack('>I8', began) .. sub(record, READY_AT)
end

-- Return whether a task is executing under this fence: attempt, length of the worker's id, the id.
local function holds(record, fence)
    return record and byte(record) == EXECUTING and sub(record, ATTEMPT, ATTEMPT + #fence - 1) == fence
end
