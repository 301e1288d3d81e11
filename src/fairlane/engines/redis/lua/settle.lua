#!lua flags=allow-oom
-- needs: record books moves
-- ARGV: '1' when reaping, number of kinds,
--       per kind: verb, target:label:bucket, state, outcome, worker, and whether (1 or 0) the task ends,
--       its slot stays taken, it queues up anew,
--       per item: its numbers in 50 bytes (see settle.py), then its result or error.
local reaping, kind_count = ARGV[1] == '1', tonumber(ARGV[2])
local first_item = 3 + 8 * kind_count

local kinds = {}
for k = 3, first_item - 1, 8 do
    local worker = ARGV[k + 4]
    kinds[#kinds + 1] = {
        verb = ARGV[k],
        change = EXECUTING .. ':' .. ARGV[k + 1],
        state = tonumber(ARGV[k + 2]),
        outcome = ARGV[k + 3],
        worker = worker,
        ends = ARGV[k + 5] == '1',
        lingers = ARGV[k + 6] == '1',
        anew = ARGV[k + 7] == '1',
        fences = {},  -- by attempt
        passages = {},  -- by place
        held = gathered('SREM', HELD .. worker),
    }
end

local ids = {}
for i = first_item, #ARGV do
    ids[#ids + 1] = sub(ARGV[i], 1, 16)
end
if #ids == 0 then
    return {}
end
local records = call('HMGET', LIVE, unpack(ids))

local function is_dead(worker)
    local status = call('HGET', WORKER .. worker, 'status')
    return not status or status == 'dead'
end

local function is_overdue(id, worker)
    local deadline = call('ZSCORE', DEADLINES, id)
    return (deadline and tonumber(deadline) <= now) or is_dead(worker)
end

-- What settlements of a kind share at one place: their passage, and the slots they free.
local function passage_of(kind, place)
    local through = kind.passages[place]
    if not through then
        through = passage(kind.verb, place, kind.worker, kind.change)
        local slots = slots_of(place)
        through.slots = call('EXISTS', slots) == 1 and gathered('SREM', slots)
        kind.passages[place] = through
    end
    return through
end

local function fence_of(kind, attempt)
    local fence = kind.fences[attempt]
    if not fence then
        fence = attempt .. holder(kind.worker)
        kind.fences[attempt] = fence
    end
    return fence
end

-- The task's record after its end.
local function at_end(record, kind, started_at, rest, result)
    return moved(record, kind.state, NONE, bytes_of(record, CLAIMED_AT), started_at, rest, result)
end

-- The record of a task that will run again.
local function given_back(record, kind, numbers, after)
    local due_at = pack('>I8', now + after)
    -- A snoozed task starts over; a retry keeps its place in the queue.
    local times = kind.anew and due_at .. due_at or sub(record, READY_AT, CREATED_AT - 1)
    local rest = times .. bytes_of(record, CREATED_AT) .. numbers .. sub(record, EXPIRES_AT, WORKER - 1) .. UNHELD
    return moved(record, kind.state, kind.state == QUEUED and NONE or due_at, NONE, NONE, rest)
end

local function give_back(id, record)
    later('HSET', LIVE, id, record)
    later('HDEL', PROGRESS, id)
    watch_expiry(id, record)
    if byte(record) == QUEUED then
        enqueue(id, record)
    else
        later('ZADD', DUE, whole(time_of(record, DUE_AT)), id)
    end
end

-- A run is over: the worker's hands are free of it, and its slot is, unless it lingers.
local function release(id, record, run, kind, through)
    local held, slots = kind.held, through.slots
    held[#held + 1] = run
    if bytes_of(record, STARTED_AT) ~= NONE then
        later('ZREM', DEADLINES, id)
    end
    if kind.lingers and not is_dead(kind.worker) then
        later('SADD', LINGERING .. kind.worker, run)
    elseif slots then
        slots[#slots + 1] = run
    end
end

local late, done, ready = {}, {}, false
for i, id in ipairs(ids) do
    local item, record = ARGV[first_item + i - 1], records[i]
    local attempt, run = sub(item, 17, 20), sub(item, 1, 20)
    local duration, k = read('>i8I2', item, 21)
    local kind = kinds[k]
    -- Of two reports under one fence the first is applied and the second judged like a late one.
    if done[id] or not holds(record, fence_of(kind, attempt)) or (reaping and not is_overdue(id, kind.worker)) then
        late[#late + 1] = i
    else
        done[id] = true
        local through, body = passage_of(kind, place_of(record)), sub(item, 51)
        local started_at = duration < 0 and bytes_of(record, STARTED_AT) or pack('>I8', now - duration)
        release(id, record, run, kind, through)
        note_run(through, sub(item, 1, 28), duration)
        if kind.state == COMPLETED then
            finish(id, at_end(record, kind, started_at, sub(record, READY_AT), body), COMPLETED)
        elseif kind.ends then
            local retries = sub(item, 31, 32)
            local rest = sub(record, READY_AT, RETRIES - 1) .. retries .. sub(record, RETURNS)
            finish(id, at_end(record, kind, started_at, rest), kind.state)
        else
            give_back(id, given_back(record, kind, sub(item, 31, 42), read('>I8', item, 43)))
            ready = ready or kind.state == QUEUED
        end
        if kind.state ~= COMPLETED then
            record_run(id, attempt, kind.worker, started_at, kind.outcome, body)
        end
        if kind.state ~= COMPLETED and body ~= '' then
            later('HSET', ERRORS, id, body)
        elseif attempt ~= '\0\0\0\1' then
            later('HDEL', ERRORS, id)  -- only a task that ran before can have one
        end
    end
end

-- A worker that reports too late has let go of the run, whatever became of the task.
if not reaping then
    for _, i in ipairs(late) do
        local item = ARGV[first_item + i - 1]
        local worker, run = kinds[read('>I2', item, 29)].worker, sub(item, 1, 20)
        if call('SISMEMBER', LINGERING .. worker, run) == 1 then
            later('SREM', LINGERING .. worker, run)
            later('SREM', slots_of(place_of(call('HGET', TASKS, ids[i]))), run)
        end
    end
end

write()
write_ended()
post()
if ready then
    wake()
end
return late
