#!lua flags=allow-oom
-- needs: record accounting moves
-- Correct times that lie ahead of now, because the clock was set back.
-- ARGV: where to go on: the name of a stream ('' at first), and how many of its waiting tasks to skip.
-- Returns the same for the next call, or nothing when all is done.
local stream, skipped = ARGV[1], tonumber(ARGV[2])
local limit = now + STEP
local limit_text = '(' .. whole(limit)

-- Return the record with another time in a field of 8 bytes.
local function with_time(record, field, time)
    return sub(record, 1, field - 1) .. pack('>i8', time) .. sub(record, field + 8)
end

-- Return the spec of a task as submitted (see record.py): JSON, or ''.
local function spec_of(task)
    local _, key_length, spec_length = read('>HHI4', task, HEAD + 1)
    local before = HEAD + 8 + key_length
    return sub(task, before + 1, before + spec_length)
end

-- Return a time, moved back if it lies ahead of now.
local function earlier(record, field, by)
    local time = time_of(record, field)
    return time > now and time - by or time
end

-- Runs count as started, and claimed, now at the latest.
local function correct_runs(worker)
    for _, run in ipairs(call('SMEMBERS', HELD .. worker)) do
        local id = sub(run, 1, 16)
        local record = call('HGET', LIVE, id)
        local corrected = record
        if record and time_of(record, CLAIMED_AT) > limit then
            corrected = with_time(corrected, CLAIMED_AT, now)
        end
        if record and time_of(record, STARTED_AT) > limit then
            corrected = started(id, corrected, now)
        end
        if corrected ~= record then
            later('HSET', LIVE, id, corrected)
        end
    end
end

if stream == '' then
    for _, worker in ipairs(call('ZRANGE', WORKERS, 0, -1)) do
        local seen_at = call('HGET', WORKER_HASH .. worker, 'seen_at')
        if seen_at and tonumber(seen_at) > limit then
            later('HSET', WORKER_HASH .. worker, 'seen_at', now_text)
        end
        correct_runs(worker)
    end
    local buckets = call('HGETALL', BUCKETS)
    for i = 1, #buckets, 2 do
        local tokens, at = string.match(buckets[i + 1], '(%S+) (%S+)')
        if tonumber(at) > limit then
            later('HSET', BUCKETS, buckets[i], tokens .. ' ' .. now_text)
        end
    end
end

local queued = 0
for _, name in ipairs(call('SMEMBERS', STREAMS)) do
    local ids = call('ZRANGE', QUEUE .. name, limit_text, '+inf', 'BYSCORE', 'LIMIT', 0, BATCH - queued)
    for i, record in ipairs(live_records(ids)) do
        later('ZADD', QUEUE .. name, now_text, ids[i])
        later('HSET', LIVE, ids[i], with_time(record, READY_AT, now))
    end
    queued = queued + #ids
    if queued == BATCH then
        write()
        return {stream, skipped}
    end
end

-- From the last due task down: what moves, moves towards the part that is still to come.
local names, more = call('ZRANGE', DUE_STREAMS, 0, -1), {}
table.sort(names)
for _, name in ipairs(names) do
    if name >= stream then
        local from = name == stream and skipped or 0
        local ids = call('ZRANGE', DUE .. name, '+inf', limit_text, 'BYSCORE', 'REV', 'LIMIT', from, BATCH)
        local stayed = 0
        local records, tasks = live_records(ids)
        for i, record in ipairs(records) do
            -- Twin of core/clocks.py, brought_back(), and of Spec.waits_for_date().
            local by = time_of(record, UPDATED_AT) - now
            local spec = spec_of(tasks[i])
            local dated = spec ~= '' and read('>I4', record, ATTEMPT) == 0 and cjson.decode(spec).dated
            if by <= STEP or dated then
                stayed = stayed + 1
            else
                local changed = with_time(record, DUE_AT, time_of(record, DUE_AT) - by)
                changed = with_time(changed, UPDATED_AT, now)
                changed = with_time(changed, READY_AT, earlier(record, READY_AT, by))
                changed = with_time(changed, RUN_AT, earlier(record, RUN_AT, by))
                later('HSET', LIVE, ids[i], changed)
                wait_until_due(ids[i], changed)
            end
        end
        if #ids == BATCH then
            more = {name, from + stayed}
            break
        end
    end
end
write()
update_streams()
if next(due_streams_changed) then
    wake()  -- who waits for the next due time waits for an earlier one now
end
return more
