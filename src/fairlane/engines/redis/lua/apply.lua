#!lua flags=allow-oom
-- needs: record accounting moves dependents
-- ARGV: '1' when reaping, number of kinds, the lines that the journal would have of all items,
--       per kind: verb, target:label:bucket, state, run, worker, attempt, whether (1 or 0) the task ends,
--       its slot lingers, its place is reset, and how many items are of it,
--       per item, kind by kind: its result; for other moves 20 bytes (see apply.py), then its error.
-- Answers which items come too late; if any type has a breaker, the catalogue's version and triples of
-- kind, lane, and how many runs ended there.
local reaping, kind_count, lines = ARGV[1] == '1', tonumber(ARGV[2]), ARGV[3]
local first_item = 4 + 10 * kind_count

local kinds = {}
for k = 4, first_item - 1, 10 do
    local worker, attempt = ARGV[k + 4], pack('>I4', ARGV[k + 5])
    kinds[#kinds + 1] = {
        verb = ARGV[k],
        change = EXECUTING .. ':' .. ARGV[k + 1],
        state = tonumber(ARGV[k + 2]),
        run = ARGV[k + 3],
        worker = worker,
        attempt = attempt,
        fence = attempt .. holder(worker),
        again = tonumber(ARGV[k + 5]) > 1,
        ends = ARGV[k + 6] == '1',
        lingers = ARGV[k + 7] == '1',
        resets = ARGV[k + 8] == '1',
        count = tonumber(ARGV[k + 9]),
        passages = {},  -- by the end of a record
        beginnings = {},  -- of records after their end, by what they began with
        by_lane = {},  -- how many runs ended, where breakers count
        held = gathered('SREM', HELD .. worker),
    }
end

local ids = {}
for at = 1, #lines, LINE do
    ids[#ids + 1] = sub(lines, at, at + 15)
end
local records = call('HMGET', LIVE, unpack(ids))
local breakers = call('EXISTS', CIRCUITS) == 1

local function is_overdue(id, worker)
    local deadline = call('ZSCORE', DEADLINES, id)
    return (deadline and tonumber(deadline) <= now) or is_dead(worker)
end

-- What a kind makes of records that end alike, in lane, level, attempt and worker: their passage, and
-- the slots they free. False where the fence is another one's.
local function passage_of(kind, ending)
    local through = sub(ending, ATTEMPT - LANE + 1) == kind.fence
    if through then
        local place = sub(ending, 1, ATTEMPT - LANE)
        local slots = slots_of(place)
        through = passage(kind.verb, place, kind.worker, kind.change)
        through.slots = call('EXISTS', slots) == 1 and gathered('SREM', slots)
    end
    kind.passages[ending] = through
    return through
end

-- How a record begins after its task's end, up to STARTED_AT.
local function beginning_at_end(kind, old)
    local new = beginning(old, kind.state) .. NONE .. bytes_of(old, CLAIMED_AT)
    kind.beginnings[old] = new
    return new
end

-- The record of a task that will run again.
local function given_back(record, kind, numbers, after)
    local due_at = pack('>I8', now + after)
    local times = kind.resets and due_at .. due_at or sub(record, READY_AT, CREATED_AT - 1)
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

-- A slot stays taken while its worker, which lives, still runs the task.
local function linger(run, kind, place, slots)
    if not is_dead(kind.worker) then
        later('HSET', LINGERING .. kind.worker, run, place)
    elseif slots then
        slots[#slots + 1] = run
    end
end

-- Everything but a completion: what is left of the run, and perhaps the task runs again.
local function end_badly(id, record, kind, started_at, item)
    local problem = sub(item, 21)
    if kind.ends then
        local rest = sub(record, READY_AT, RETRIES - 1) .. sub(item, 1, 2) .. sub(record, RETURNS)
        finish(id, moved(record, kind.state, NONE, bytes_of(record, CLAIMED_AT), started_at, rest), kind.state)
    else
        give_back(id, given_back(record, kind, sub(item, 1, 12), read('>I8', item, 13)))
    end
    record_run(id, kind.attempt, kind.worker, started_at, kind.run, problem)
    if problem ~= '' then
        later('HSET', ERRORS, id, problem)
    elseif kind.again then
        later('HDEL', ERRORS, id)  -- only a task that ran before can have one
    end
end

-- The loop that every task passes through makes as few strings as it can: most of its time is theirs.
local late, done, ready, i = {}, {}, false, 0
for _, kind in ipairs(kinds) do
    local passages, beginnings, held = kind.passages, kind.beginnings, kind.held
    for _ = 1, kind.count do
        local at = LINE * i + 1
        i = i + 1
        local id, record, item = ids[i], records[i], ARGV[first_item + i - 1]
        local ending = record and byte(record) == EXECUTING and sub(record, LANE)
        local through = ending and passages[ending]
        if ending and through == nil then
            through = passage_of(kind, ending)
        end
        -- Of two reports under one fence the first is applied and the second judged like a late one.
        if not through or done[id] or (reaping and not is_overdue(id, kind.worker)) then
            late[#late + 1] = i
        else
            done[id] = true
            local run, duration = sub(lines, at, at + 19), read('>i8', lines, at + 20)
            local started_at = sub(record, STARTED_AT, READY_AT - 1)
            held[#held + 1] = run
            if breakers then
                local lane = read('>H', ending)
                kind.by_lane[lane] = (kind.by_lane[lane] or 0) + 1
            end
            if started_at ~= NONE then
                later('ZREM', DEADLINES, id)
            end
            if duration >= 0 then
                started_at = pack('>I8', now - duration)
            end
            if kind.lingers then
                linger(run, kind, place_of(record), through.slots)
            elseif through.slots then
                through.slots[#through.slots + 1] = run
                ready = true  -- another one may run in its place
            end
            note_run(through, lines, at, duration)
            if kind.state == COMPLETED then
                local old = sub(record, 1, STARTED_AT - 1)
                local new = beginnings[old] or beginning_at_end(kind, old)
                finish(id, new .. started_at .. sub(record, READY_AT, LANE - 1) .. ending .. item, COMPLETED)
                if kind.again then
                    later('HDEL', ERRORS, id)
                end
            else
                end_badly(id, record, kind, started_at, item)
                ready = ready or kind.state == QUEUED
            end
        end
    end
end

local function worker_of_item(i)
    for _, kind in ipairs(kinds) do
        if i <= kind.count then
            return kind.worker
        end
        i = i - kind.count
    end
end

-- A worker that reports too late has let go of the run, whatever became of the task.
if not reaping then
    for _, i in ipairs(late) do
        local worker, run = worker_of_item(i), sub(lines, LINE * i - LINE + 1, LINE * i - LINE + 20)
        local place = call('HGET', LINGERING .. worker, run)
        if place then
            later('HDEL', LINGERING .. worker, run)
            later('SREM', slots_of(place), run)
            ready = true
        end
    end
end

release_dependents()
post()
if ready or freed > 0 or bonds_left == 0 then
    wake()
end

-- How many runs of each kind ended in each lane, where a breaker may want to know.
local runs = {}
if breakers then
    for k, kind in ipairs(kinds) do
        for lane, count in pairs(kind.by_lane) do
            runs[#runs + 1] = {k, lane, count}
        end
    end
end
return {late, breakers and catalogue_version or '', runs}
