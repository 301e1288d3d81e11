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

-- A task no longer waits for its parents.
local function unbind(id)
    local bond = call('HGET', BONDS, id)
    if bond then
        later('HDEL', BONDS, id)
        for at = 2, #bond, 16 do
            later('SREM', CHILDREN .. sub(bond, at, at + 15), id)
        end
    end
end

-- A waiting task leaves the place where it waits.
local function withdraw(id, record)
    if byte(record) == QUEUED then
        local stream = stream_of(place_of(record))
        later('ZREM', QUEUE .. stream, id)
        thinned[stream] = true
    elseif bytes_of(record, DUE_AT) == NONE then
        unbind(id)
    else
        later('ZREM', DUE, id)
    end
    forget_expiry(id, record)
end

local function is_dead(worker)
    local status = call('HGET', WORKER_HASH .. worker, 'status')
    return not status or status == 'dead'
end

-- A move takes a task from its worker. The slot may stay taken until the worker lets go, too.
local function let_go(move, id, record, run, worker)
    later('SREM', HELD .. worker, run)
    if bytes_of(record, STARTED_AT) ~= NONE then
        later('ZREM', DEADLINES, id)
    end
    if move.lingers and not is_dead(worker) then
        later('HSET', LINGERING .. worker, run, place_of(record))
    else
        later('SREM', slots_of(place_of(record)), run)
    end
end

-- The error that users read, in place of the one before ('' for none).
local function set_error(id, error)
    if error == '' then
        later('HDEL', ERRORS, id)
    else
        later('HSET', ERRORS, id, error)
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
    local runs = call('HGETALL', LINGERING .. worker)
    for i = 1, #runs, 2 do
        later('HDEL', LINGERING .. worker, runs[i])
        later('SREM', slots_of(runs[i + 1]), runs[i])
    end
end
