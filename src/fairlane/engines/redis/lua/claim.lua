#!lua flags=allow-oom
-- needs: record accounting moves dependents due claim_limits claim_order
-- Give tasks to a worker.
-- ARGV: the version of the catalogue, worker id, request id, free slots, number of tasks to hold ahead,
--       batch size, the lanes and limits of the worker (JSON, see claim.py), the aging of levels (JSON,
--       see claim.py), the age in microseconds at which aging begins, '1' if the worker names the last
--       request whose answer it has received (else '0'), and the id of that request.
-- Returns {'granted', microseconds until the next claim is worthwhile ('' if unknown), packed ids, tasks};
--       {'again', '', packed ids, tasks, request id} for a repeated request; {'stale'} for another version
--       of the catalogue; {'gone'} for a dead or unknown worker.
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

-- Return a task as it is sent to the worker: its record without the worker, then the fixed part. The
-- first attempt is sent as it was submitted, which costs nothing.
local function as_granted(record, task)
    return sub(record, 1, WORKER - 1) .. UNHELD .. sub(task, HEAD + 1)
end

-- The worker did not receive the answer: return the same tasks again, except those that it no longer
-- holds.
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
            again[#again + 1] = as_granted(record, tasks[i])
        end
    end
    return {'again', '', table.concat(held), again, last_request or ''}
end

-- The lanes from which the worker may take tasks: spans of them (nil: all lanes), and those of limited
-- types, by the position of their quota.
local opening = cjson.decode(ARGV[7])
local spans, limited = opening.spans, {}
if spans == cjson.null then
    spans = nil
end
for i, quota in ipairs(opening.quotas) do
    for _, lane in ipairs(quota.lanes) do
        limited[lane] = i
    end
end

-- Return whether the worker may take tasks from a lane: find the last span that begins before it.
local function is_open(lane)
    local low, high = 0, #spans
    while low < high do
        local middle = math.ceil((low + high) / 2)
        if spans[middle][1] <= lane then
            low = middle
        else
            high = middle - 1
        end
    end
    return low > 0 and lane <= spans[low][2]
end

-- What the limits allow this claim to take: of everything, of each limited type, and of all these together.
-- A task that a worker holds ahead would use up tokens and slots before it runs.
local most = math.min(opening.rate > 0 and slots or slots + ahead, batch)
local limited_slots, types = {most = slots, taken = 0}, {}
local everything = allowance({type = '', rate = opening.rate, slots = 0, open_until = 0, opened_at = 0}, most)
for i, quota in ipairs(opening.quotas) do
    types[i] = allowance(quota, batch, limited_slots)
end

-- Return those of the streams that are in the worker's lanes, each with the allowance of its type. `set` is
-- the key of a stream's tasks, without its name.
local function open_streams(names, set)
    local found = {}
    for _, name in ipairs(names) do
        local lane, level = string.match(name, '(%d+):(%d+)')
        lane, level = tonumber(lane), tonumber(level)
        if not spans or is_open(lane) then
            local left = types[limited[lane]]
            found[#found + 1] = {name = name, key = set .. name, lane = lane, level = level, left = left, taken = 0}
        end
    end
    return found
end

-- Return the names of streams that have tasks, with all in the worker's lanes among them. If it has few
-- lanes, and many streams have tasks, look for each stream of its lanes.
local function filled_streams()
    local few = opening.few
    if spans and #spans == 0 then
        return {}
    elseif few == cjson.null or call('SCARD', STREAMS) <= #few * (HIGHEST_LEVEL + 1) then
        return call('SMEMBERS', STREAMS)
    end
    local names, found = {}, {}
    for _, lane in ipairs(few) do
        for level = 0, HIGHEST_LEVEL do
            names[#names + 1] = lane .. ':' .. level
        end
    end
    for i, has_tasks in ipairs(call('SMISMEMBER', STREAMS, unpack(names))) do
        if has_tasks == 1 then
            found[#found + 1] = names[i]
        end
    end
    return found
end

-- Queue due tasks, up to a batch: first those that come first among all that the worker may take now. Return
-- their number, and whether there may be more for the worker.
local function release_first_due()
    local names, released = due_streams(), 0
    local streams = open_streams(names, DUE)
    for _, stream in ipairs(streams) do
        stream.due_only = true
    end
    merge(streams, batch)
    limited_slots.taken = 0  -- nothing is claimed yet
    for _, left in ipairs(types) do
        left.taken = 0
    end
    for _, stream in ipairs(streams) do
        released = released + release_due(stream.name, stream.taken)
    end
    write()
    local more = released == batch
    for _, name in ipairs(names) do
        if released == batch then
            break
        end
        released = released + release_due(name, batch - released)
    end
    write()
    return released, more
end

-- Pick the first tasks within the limits, and spend tokens for them.
local function pick()
    local streams = open_streams(filled_streams(), QUEUE)
    for _, stream in ipairs(streams) do
        stream.place = pack('>HB', stream.lane, stream.level)
        stream.slots = stream.left and stream.left.counted and gathered('SADD', SLOTS .. stream.lane)
    end
    local ids, from
    if #streams == 1 and not streams[1].left and everything.most > 0 then
        ids, from = take_first(streams[1], everything.most)
    else
        ids, from = merge(streams, everything.most)
    end
    everything.taken = #ids
    spend_tokens(everything)
    for _, left in ipairs(types) do
        spend_tokens(left)
    end
    for _, stream in ipairs(streams) do
        if stream.taken > 0 then
            later('ZREMRANGEBYRANK', stream.key, 0, stream.taken - 1)
            shrunk_streams[stream.name] = true
        end
        stream.level_until = nil  -- `take` starts again from the oldest task
    end
    return ids, from
end

-- Return the passage of a claimed task. Claims are counted per effective level, and by how long tasks had
-- been ready: see waits_of() in core/tally.py. Tasks come oldest first, so the passage found last is valid
-- for tasks that became ready up to `passage_until`.
local function claim_passage(stream, ready_at)
    local effective = effective_level(stream, ready_at)
    local raised = effective ~= stream.level
    local wait, bucket = now - ready_at, 0
    while WAIT_BOUNDS[bucket + 1] and wait > WAIT_BOUNDS[bucket + 1] do
        bucket = bucket + 1
    end
    stream.passage_until = bucket > 0 and now - WAIT_BOUNDS[bucket] - 1 or math.huge
    if raised then
        stream.passage_until = math.min(stream.passage_until, stream.level_until)
    end
    local transition = QUEUED .. ':' .. EXECUTING .. ':' .. (raised and effective or '') .. ':' .. bucket
    stream.passage = passage_for('claim', stream.place, worker, transition)
end

local FIRST_ATTEMPT, SECOND_VERSION = pack('>I4', 1), pack('>I4', 2)

-- Give tasks to the worker; return the tasks as they are sent, and their runs. The loop creates as few
-- strings as possible, because they take most of its time.
local function take(ids, from)
    local records, tasks = call('HMGET', LIVE, unpack(ids)), call('HMGET', TASKS, unpack(ids))
    local runs, held_by = {}, holder(worker)
    local live, held = gathered('HSET', LIVE), gathered('SADD', HELD .. worker)
    local times = NONE .. stamp .. NONE  -- due_at, claimed_at, started_at
    local first_beginning, first_ending = char(EXECUTING) .. SECOND_VERSION .. stamp .. times, FIRST_ATTEMPT .. held_by
    local any_expiring = call('EXISTS', EXPIRING) == 1
    local last_bytes, ready_at
    for i, id in ipairs(ids) do
        local stream, record = from[i], records[i]
        local run, now_live
        if record then
            local attempt = next_attempt(record)
            run = id .. attempt
            now_live = beginning(record, EXECUTING) .. times .. sub(record, READY_AT, LEVEL) .. attempt .. held_by
            tasks[i] = as_granted(now_live, tasks[i])
        else  -- it has not moved since its submission, so it starts with its record
            record = tasks[i]
            run = id .. FIRST_ATTEMPT
            now_live = first_beginning .. sub(record, READY_AT, LEVEL) .. first_ending
        end
        runs[i] = run
        live[2 * i + 1] = id  -- after the command and the key
        live[2 * i + 2] = now_live
        held[i + 2] = run
        if stream.slots then
            stream.slots[#stream.slots + 1] = run
        end
        if any_expiring then
            forget_expiry(id, record)
        end
        local bytes = sub(record, READY_AT, RUN_AT - 1)
        if bytes ~= last_bytes then  -- tasks that were submitted together were ready at the same time
            last_bytes, ready_at = bytes, read('>i8', bytes)
        end
        if not stream.passage or ready_at > stream.passage_until then
            claim_passage(stream, ready_at)
        end
        local passage = stream.passage
        local lines = passage.lines
        lines[#lines + 1] = run
        if ready_at < now then
            passage.duration = passage.duration + now - ready_at
        end
    end
    return tasks, runs
end

local released, more_due = release_first_due()
local expired = expire(batch)
local more_to_resolve = resolve_left_over()
release_dependents()
update_streams()
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
-- A claim without tasks writes nothing within a third of the lease, so that idle workers cost no disk
-- writes.
if #answers > 0 or now - seen_at > math.floor(lease / 3) then
    later('HSET', WORKER_HASH .. worker, 'seen_at', now_text)
end
write()
update_streams()
post()
if released + freed > #answers then
    wake()  -- there are more tasks than this worker took
end

if more_to_expire then
    return {'granted', '0', '', {}}
end
local wait = more_due and 0 or next_due_in() or opening_wait
if wait and opening_wait then
    wait = math.min(wait, opening_wait)
end
if more_to_resolve and #answers == 0 then
    wait = 0
end
return {'granted', wait and whole(wait) or '', table.concat(ids), answers}
