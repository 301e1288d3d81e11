-- Tasks come and go: what has to be written where.

-- A task is ready: it queues up at its place.
local function enqueue(id, record)
    local stream = stream_of(place_of(record))
    later('ZADD', QUEUE .. stream, whole(time_of(record, READY_AT)), id)
    later('SADD', STREAMS, stream)
end

-- A task waits (again): if it has an expiry, that counts.
local function watch_expiry(id, record)
    if bytes_of(record, EXPIRES_AT) ~= NONE then
        later('ZADD', EXPIRING, whole(time_of(record, EXPIRES_AT)), id)
    end
end

local function forget_expiry(id, record)
    if bytes_of(record, EXPIRES_AT) ~= NONE then
        later('ZREM', EXPIRING, id)
    end
end

-- Streams that may have become empty; `write` must have run.
local thinned = {}
local function drop_empty_streams()
    for stream in pairs(thinned) do
        if call('EXISTS', QUEUE .. stream) == 0 then
            call('SREM', STREAMS, stream)
        end
    end
end

-- A waiting task leaves the place where it waits.
local function withdraw(id, record)
    if byte(record) == QUEUED then
        local stream = stream_of(place_of(record))
        later('ZREM', QUEUE .. stream, id)
        thinned[stream] = true
    else
        later('ZREM', DUE, id)
    end
    forget_expiry(id, record)
end

-- A worker's hands are free of a run; its slot may stay taken.
local function let_go(id, record, run, worker, lingers)
    later('SREM', HELD .. worker, run)
    if bytes_of(record, STARTED_AT) ~= NONE then
        later('ZREM', DEADLINES, id)
    end
    if lingers then
        later('SADD', LINGERING .. worker, run)
    else
        later('SREM', slots_of(place_of(record)), run)
    end
end

-- A task has ended; `record` is the new one, with the result behind it.
local ended_records, ended_ids, ended_by_state = {'HSET', FINISHED}, {'HDEL', LIVE}, {}
local function finish(id, record, state)
    ended_records[#ended_records + 1] = id
    ended_records[#ended_records + 1] = record
    ended_ids[#ended_ids + 1] = id
    local ids = ended_by_state[state]
    if not ids then
        ids = {}
        ended_by_state[state] = ids
    end
    ids[#ids + 1] = id
end

local function write_ended()
    if #ended_ids > 2 then
        call(unpack(ended_records))
        call(unpack(ended_ids))
    end
    for state, ids in pairs(ended_by_state) do
        call('XADD', ENDED .. state, '*', 'at', now_text, 'ids', table.concat(ids))
    end
end

-- A run that did not complete goes into the task's history.
local function record_run(id, attempt, worker, started_at, outcome, problem)
    local run = attempt .. started_at .. stamp .. pack('>BBI4', #worker, #outcome, #problem)
    local earlier = call('HGET', RUNS, id) or ''
    later('HSET', RUNS, id, earlier .. run .. worker .. outcome .. problem)
end

-- A worker is gone: the slots it had yet to let go of are free.
local function free_lingering(worker)
    for _, run in ipairs(call('SMEMBERS', LINGERING .. worker)) do
        local task = call('HGET', TASKS, sub(run, 1, 16))
        later('SREM', LINGERING .. worker, run)
        later('SREM', slots_of(place_of(task)), run)
    end
end
