-- Put tasks into the sets of their states, and take them out.

-- Queue a ready task in the stream of its lane and level.
local function enqueue(id, record)
    local stream = stream_of(place_of(record))
    later('ZADD', QUEUE .. stream, whole(time_of(record, READY_AT)), id)
    later('SADD', STREAMS, stream)
end

-- Watch the expiry of a waiting task, if it has one.
local function watch_expiry(id, record)
    if bytes_of(record, EXPIRES_AT) ~= NONE then
        later('ZADD', EXPIRING, whole(time_of(record, EXPIRES_AT)), id)
    end
end

-- Stop watching the expiry of a task.
local function forget_expiry(id, record)
    if bytes_of(record, EXPIRES_AT) ~= NONE then
        later('ZREM', EXPIRING, id)
    end
end

-- Let a task wait in its stream until it is due.
local due_streams_changed = {}
local function wait_until_due(id, record)
    local stream = stream_of(place_of(record))
    later('ZADD', DUE .. stream, whole(time_of(record, DUE_AT)), id)
    due_streams_changed[stream] = true
end

-- Bring the sets of streams up to date: of those that have become empty, and of those whose first due
-- task may be another one. Call `write` first.
local shrunk_streams = {}
local function update_streams()
    for stream in pairs(shrunk_streams) do
        if call('EXISTS', QUEUE .. stream) == 0 then
            call('SREM', STREAMS, stream)
        end
    end
    for stream in pairs(due_streams_changed) do
        local due_at = call('ZRANGE', DUE .. stream, 0, 0, 'WITHSCORES')[2]
        if due_at then
            call('ZADD', DUE_STREAMS, due_at, stream)
        else
            call('ZREM', DUE_STREAMS, stream)
        end
    end
end

-- Remove the bond of a task to its parents.
local function unbind(id)
    local bond = call('HGET', BONDS, id)
    if bond then
        later('HDEL', BONDS, id)
        for at = 2, #bond, 16 do
            later('SREM', CHILDREN .. sub(bond, at, at + 15), id)
        end
    end
end

-- Take a waiting task out of the set of its state.
local function leave(id, record)
    if byte(record) == QUEUED then
        local stream = stream_of(place_of(record))
        later('ZREM', QUEUE .. stream, id)
        shrunk_streams[stream] = true
    elseif bytes_of(record, DUE_AT) == NONE then
        unbind(id)
    else
        local stream = stream_of(place_of(record))
        later('ZREM', DUE .. stream, id)
        due_streams_changed[stream] = true
    end
    forget_expiry(id, record)
end

-- Return whether a worker is dead or unknown.
local function is_dead(worker)
    local status = call('HGET', WORKER_HASH .. worker, 'status')
    return not status or status == 'dead'
end

-- Return how long a worker may hold a task unstarted, in microseconds, or nil for any time.
local function start_within(worker)
    return tonumber(call('HGET', WORKER_HASH .. worker, 'start_within') or '')
end

-- Return whether an executing task was not started within a time (nil for any time).
local function is_left_unstarted(record, within)
    return within and bytes_of(record, STARTED_AT) == NONE and time_of(record, CLAIMED_AT) + within <= now
end

-- Take a task from its worker by a move. If its slot lingers, it stays taken until the worker reports.
local function take_from_worker(move, id, record, run, worker)
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

-- Replace the error of a task ('' for none).
local function set_error(id, error)
    if error == '' then
        later('HDEL', ERRORS, id)
    else
        later('HSET', ERRORS, id, error)
    end
end

-- Return the stored runs of a task without those between its first and its last ones.
local function without_middle(runs, newest)
    local at, from = 1, nil
    while at <= #runs do
        local attempt, _, _, worker, outcome, problem, next = read('>I4I8I8BBI4', runs, at)
        if attempt > newest - LAST_RUNS then
            break
        end
        from = from or (attempt > FIRST_RUNS and at)
        at = next + worker + outcome + problem
    end
    return from and sub(runs, 1, from - 1) .. sub(runs, at) or runs
end

-- Add a run to the task's history, which ended now or at another time. One that completed is added only when
-- the task runs again.
local function record_run(id, attempt, worker, started_at, outcome, problem, ended_at)
    local run = attempt .. started_at .. (ended_at or stamp) .. pack('>BBI4', #worker, #outcome, #problem)
    local runs = (call('HGET', RUNS, id) or '') .. run .. worker .. outcome .. problem
    local newest = read('>I4', attempt)
    if newest > FIRST_RUNS + LAST_RUNS then
        runs = without_middle(runs, newest)
    end
    later('HSET', RUNS, id, runs)
end

-- Return the entry of a run in the trail of its task: see core/trail.py.
local function run_entry(record, due_at)
    local attempt = string.rep('\0', 4) .. sub(record, ATTEMPT, WORKER - 1)
    return attempt .. bytes_of(record, READY_AT) .. bytes_of(record, CLAIMED_AT) .. due_at
end

-- Add entries to the trail of a task.
local function add_to_trail(id, entries)
    later('HSET', TRAIL, id, sub((call('HGET', TRAIL, id) or '') .. entries, -TRAIL_BYTES))
end

-- Free the lingering slots of a worker that is dead or leaves.
local function free_lingering_slots(worker)
    local runs = call('HGETALL', LINGERING .. worker)
    for i = 1, #runs, 2 do
        later('HDEL', LINGERING .. worker, runs[i])
        later('SREM', slots_of(runs[i + 1]), runs[i])
    end
end
