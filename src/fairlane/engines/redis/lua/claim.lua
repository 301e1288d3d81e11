#!lua flags=allow-oom
-- needs: record accounting moves dependents due claim_limits claim_order
-- ARGV: version of the catalogue, worker, request, slots, how many to hold ahead, size of a batch,
--       what the worker may take (JSON, see claim.py), how levels age (JSON, likewise), the age in
--       microseconds before which none has, whether (1 or 0) the worker says what it has heard of, and
--       that request.
local version, worker, request = ARGV[1], ARGV[2], ARGV[3]
local slots, ahead, batch = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

if catalogue_version ~= version then
    return {'stale'}
end
local status, lease, seen_at, last_request, granted =
    unpack(call('HMGET', WORKER_HASH .. worker, 'status', 'lease', 'seen_at', 'request', 'granted'))
if not status or status == 'dead' then
    return {'gone'}
end

-- What a worker is told of a task: its record, without the worker, then what never changes. One that
-- it runs for the first time is told as it was submitted, which costs nothing.
local function told_as(record, task)
    return sub(record, 1, WORKER - 1) .. UNHELD .. sub(task, HEAD + 1)
end

-- The answer got lost: the same tasks again, but for those that are no longer this worker's.
if last_request == request or (ARGV[10] == '1' and (last_request or '') ~= ARGV[11]) then
    local ids, fences, held, again = {}, {}, {}, {}
    for at = 1, #(granted or ''), 20 do
        ids[#ids + 1] = sub(granted, at, at + 15)
        fences[#fences + 1] = sub(granted, at + 16, at + 19) .. holder(worker)
    end
    local records, tasks = {}, {}
    if #ids > 0 then
        records, tasks = live_records(ids)
    end
    for i, record in ipairs(records) do
        if holds(record, fences[i]) then
            held[#held + 1] = ids[i]
            again[#again + 1] = told_as(record, tasks[i])
        end
    end
    return {'again', '', table.concat(held), again, last_request or ''}
end

-- The streams that the worker may take from, each with what a limit leaves of it.
local function open_streams(opening, types)
    local free, limited, found = nil, {}, {}
    if opening.free ~= cjson.null then
        free = {}
        for _, lane in ipairs(opening.free) do
            free[lane] = true
        end
    end
    for i, quota in ipairs(opening.quotas) do
        for _, lane in ipairs(quota.lanes) do
            limited[lane] = types[i]
        end
    end
    for _, name in ipairs(call('SMEMBERS', STREAMS)) do
        local lane, level = string.match(name, '(%d+):(%d+)')
        lane, level = tonumber(lane), tonumber(level)
        if not free or free[lane] or limited[lane] then
            found[#found + 1] = {
                name = name,
                key = QUEUE .. name,
                place = pack('>HB', lane, level),
                level = level,
                left = limited[lane],
                taken = 0,
                slots = limited[lane] and limited[lane].counted and gathered('SADD', SLOTS .. lane),
            }
        end
    end
    return found
end

local function pick()
    local opening = cjson.decode(ARGV[7])
    -- What is held ahead of its run would use up tokens and slots for nothing.
    local most = math.min(opening.rate > 0 and slots or slots + ahead, batch)
    local limited_slots, types = {most = slots, taken = 0}, {}
    local everything = allowance({type = '', rate = opening.rate, slots = 0, open_until = 0}, most)
    for i, quota in ipairs(opening.quotas) do
        types[i] = allowance(quota, batch, limited_slots)
    end
    local streams = open_streams(opening, types)
    local ids, from
    if #streams == 1 and not streams[1].left and everything.most > 0 then
        ids, from = take_first(streams[1], everything.most)
    else
        ids, from = merge(streams, everything.most)
    end
    everything.taken = #ids
    pay(everything)
    for _, left in ipairs(types) do
        pay(left)
    end
    for _, stream in ipairs(streams) do
        if stream.taken > 0 then
            later('ZREMRANGEBYRANK', stream.key, 0, stream.taken - 1)
            thinned[stream.name] = true
        end
        stream.level_until = nil  -- `take` goes through it from its oldest task again
    end
    return ids, from
end

-- Claims from a stream are counted apart by the level that age has raised them to. Tasks come oldest
-- first: after one that age has not raised there is none that it has.
local function passage_of(stream, record)
    local effective = effective_level(stream, time_of(record, READY_AT))
    local label = effective == stream.level and '' or effective
    local through = passage('claim', stream.place, worker, QUEUED .. ':' .. EXECUTING .. ':' .. label .. ':-1')
    stream.unraised = label == '' and through
    return through
end

local FIRST_ATTEMPT, SECOND_VERSION = pack('>I4', 1), pack('>I4', 2)

-- Put tasks into the worker's hands; answers what it is told of them, and the runs they are now.
-- The loop makes as few strings as it can: most of its time is theirs.
local function take(ids, from)
    local records, tasks = call('HMGET', LIVE, unpack(ids)), call('HMGET', TASKS, unpack(ids))
    local runs, held_by = {}, holder(worker)
    local live, held = gathered('HSET', LIVE), gathered('SADD', HELD .. worker)
    local times = NONE .. stamp .. NONE  -- due_at, claimed_at, started_at
    local first_beginning, first_ending = char(EXECUTING) .. SECOND_VERSION .. stamp .. times, FIRST_ATTEMPT .. held_by
    local any_expiring = call('EXISTS', EXPIRING) == 1
    for i, id in ipairs(ids) do
        local stream, record = from[i], records[i]
        local run, now_live
        if record then
            local attempt = next_attempt(record)
            run = id .. attempt
            now_live = beginning(record, EXECUTING) .. times .. sub(record, READY_AT, LEVEL) .. attempt .. held_by
            tasks[i] = told_as(now_live, tasks[i])
        else  -- it has not moved since its submission, and begins with the record of that
            record = tasks[i]
            run = id .. FIRST_ATTEMPT
            now_live = first_beginning .. sub(record, READY_AT, LEVEL) .. first_ending
        end
        runs[i] = run
        live[2 * i + 1] = id  -- behind the command and the key
        live[2 * i + 2] = now_live
        held[i + 2] = run
        if stream.slots then
            stream.slots[#stream.slots + 1] = run
        end
        if any_expiring then
            forget_expiry(id, record)
        end
        local lines = (stream.unraised or passage_of(stream, record)).lines
        lines[#lines + 1] = run
    end
    return tasks, runs
end

local released = release_due(batch)
local expired = expire(batch)
local more_to_resolve = resolve_earlier()
release_dependents()
drop_empty_streams()
local more_to_expire = expired == batch
local ids, answers = {}, {}
if status == 'active' and not more_to_expire then
    local from
    ids, from = pick()
    if #ids > 0 then
        local runs
        answers, runs = take(ids, from)
        later('HSET', WORKER_HASH .. worker, 'request', request)
        later('HSET', WORKER_HASH .. worker, 'granted', table.concat(runs))
    end
end
-- An idle worker's claims write nothing, or every one of them would cost the disk something.
if #answers > 0 or now - seen_at > math.floor(lease / 3) then
    later('HSET', WORKER_HASH .. worker, 'seen_at', now_text)
end
write()
drop_empty_streams()
post()
if released + freed > #answers then
    wake()  -- there is more than this worker took
end

if more_to_expire then
    return {'granted', '0', '', {}}
end
local next_due = call('ZRANGE', DUE, 0, 0, 'WITHSCORES')[2]
local wait = next_due and math.max(0, next_due - now) or opening_wait
if wait and opening_wait then
    wait = math.min(wait, opening_wait)
end
if more_to_resolve and #answers == 0 then
    wait = 0
end
return {'granted', wait and whole(wait) or '', table.concat(ids), answers}
