#!lua flags=allow-oom
-- needs: record accounting moves dependents slots catalogue circuits
-- Apply moves to executing tasks.
-- ARGV: '1' when reaping, the number of kinds, the journal lines of all items as one text, '1' if a result is
--       not encrypted (else '0');
--       per kind: verb, target:label:bucket, state, run (the outcome in the history), worker id, attempt,
--       three flags (1 or 0: the task ends, its slot lingers, its place is reset), what circuit breakers
--       count the run as ('good', 'bad' or '' for neither), number of items;
--       per item, kind by kind: the result of a completion; for other moves 20 bytes (see apply.py), then
--       the error.
-- Returns the positions of late items, whose fence no longer matches; or 'plain' for a refusal.
local reaping, kind_count, lines = ARGV[1] == '1', tonumber(ARGV[2]), ARGV[3]
local first_item = 5 + 11 * kind_count

if ARGV[4] == '1' and call('HEXISTS', DOCUMENTS .. ENCRYPTION, REQUIRED) == 1 then
    return 'plain'
end

local kinds = {}
for k = 5, first_item - 1, 11 do
    local worker, attempt = ARGV[k + 4], pack('>I4', ARGV[k + 5])
    kinds[#kinds + 1] = {
        verb = ARGV[k],
        transition = EXECUTING .. ':' .. ARGV[k + 1],
        state = tonumber(ARGV[k + 2]),
        run = ARGV[k + 3],
        worker = worker,
        attempt = attempt,
        fence = attempt .. holder(worker),
        again = tonumber(ARGV[k + 5]) > 1,
        ends = ARGV[k + 6] == '1',
        lingers = ARGV[k + 7] == '1',
        resets = ARGV[k + 8] == '1',
        verdict = ARGV[k + 9],
        count = tonumber(ARGV[k + 10]),
        passages = {},  -- by the last fields of a record
        beginnings = {},  -- first fields of ended records, by those before the end
        held = gathered('SREM', HELD .. worker),
    }
end

local ids = {}
for at = 1, #lines, LINE do
    ids[#ids + 1] = sub(lines, at, at + 15)
end
local records = call('HMGET', LIVE, unpack(ids))

-- If there are circuit breakers: the runs that ended, by lane, and those that take no slot any more.
local breakers, runs_by_lane, gone = call('EXISTS', CIRCUITS) == 1, {}, {}

-- Note a run that ended in a lane, for its circuit breaker.
local function note_run(lane, verdict)
    local runs = runs_by_lane[lane]
    if not runs then
        runs = {good = 0, bad = 0}
        runs_by_lane[lane] = runs
    end
    if verdict ~= '' then
        runs[verdict] = runs[verdict] + 1
    end
end

-- Return whether a task's time limit has passed, its worker is dead, or has not started it in time.
local function is_overdue(id, record, worker)
    local deadline = call('ZSCORE', DEADLINES, id)
    return (deadline and tonumber(deadline) <= now) or is_dead(worker)
        or is_left_unstarted(record, start_within(worker))
end

-- Return the passage of a kind for records with the same last fields (lane, level, attempt, worker), with
-- the slots that they free. Return false if the fence does not match.
local function move_passage(kind, ending)
    local passage = sub(ending, ATTEMPT - LANE + 1) == kind.fence
    if passage then
        local place = sub(ending, 1, ATTEMPT - LANE)
        local slots = slots_of(place)
        passage = passage_for(kind.verb, place, kind.worker, kind.transition)
        passage.slots = call('EXISTS', slots) == 1 and gathered('SREM', slots)
    end
    kind.passages[ending] = passage
    return passage
end

-- Return the fields before STARTED_AT of a record after its task's end.
local function ended_beginning(kind, old)
    local new = beginning(old, kind.state) .. NONE .. bytes_of(old, CLAIMED_AT)
    kind.beginnings[old] = new
    return new
end

-- Return the record of a task that will run again.
local function rerun_record(record, kind, numbers, after)
    local due_at = pack('>I8', now + after)
    local times = kind.resets and due_at .. due_at or sub(record, READY_AT, CREATED_AT - 1)
    local rest = times .. bytes_of(record, CREATED_AT) .. numbers .. sub(record, EXPIRES_AT, WORKER - 1) .. UNHELD
    return moved(record, kind.state, kind.state == QUEUED and NONE or due_at, NONE, NONE, rest)
end

-- Queue a task again, or let it wait until it is due.
local function enter_again(id, record)
    later('HSET', LIVE, id, record)
    later('HDEL', PROGRESS, id)
    watch_expiry(id, record)
    if byte(record) == QUEUED then
        enqueue(id, record)
    else
        wait_until_due(id, record)
    end
end

-- Keep the slot of a run taken as long as its worker is alive and still runs the task.
local function linger(run, kind, place, slots)
    if not is_dead(kind.worker) then
        later('HSET', LINGERING .. kind.worker, run, place)
        return
    end
    gone[run] = true
    if slots then
        slots[#slots + 1] = run
    end
end

-- Apply any move except a completion, and add the run to the task's history.
local function apply_move(id, record, kind, started_at, item)
    local problem = sub(item, 21)
    if kind.ends then
        local rest = sub(record, READY_AT, RETRIES - 1) .. sub(item, 1, 2) .. sub(record, RETURNS)
        finish(id, moved(record, kind.state, NONE, bytes_of(record, CLAIMED_AT), started_at, rest), kind.state)
    else
        local again = rerun_record(record, kind, sub(item, 1, 12), read('>I8', item, 13))
        enter_again(id, again)
        add_to_trail(id, run_entry(record, bytes_of(again, DUE_AT)))
    end
    record_run(id, kind.attempt, kind.worker, started_at, kind.run, problem)
    if problem ~= '' then
        later('HSET', ERRORS, id, problem)
    elseif kind.again then
        later('HDEL', ERRORS, id)  -- only a task with earlier attempts can have one
    end
end

-- Every task passes through this loop. It creates as few strings as possible, because they take most of
-- its time.
local late, done, ready, i = {}, {}, false, 0
for _, kind in ipairs(kinds) do
    local passages, beginnings, held = kind.passages, kind.beginnings, kind.held
    for _ = 1, kind.count do
        local at = LINE * i + 1
        i = i + 1
        local id, record, item = ids[i], records[i], ARGV[first_item + i - 1]
        local ending = record and byte(record) == EXECUTING and sub(record, LANE)
        local passage = ending and passages[ending]
        if ending and passage == nil then
            passage = move_passage(kind, ending)
        end
        -- Of two reports under one fence the first is applied, and the second is late.
        if not passage or done[id] or (reaping and not is_overdue(id, record, kind.worker)) then
            late[#late + 1] = i
        else
            done[id] = true
            local run, duration = sub(lines, at, at + 19), read('>i8', lines, at + 20)
            local started_at = sub(record, STARTED_AT, READY_AT - 1)
            held[#held + 1] = run
            if breakers then
                note_run(read('>H', ending), kind.verdict)
                gone[run] = not kind.lingers
            end
            if started_at ~= NONE then
                later('ZREM', DEADLINES, id)
            end
            if duration >= 0 then
                started_at = pack('>I8', now - duration)
            end
            if kind.lingers then
                linger(run, kind, place_of(record), passage.slots)
            elseif passage.slots then
                passage.slots[#passage.slots + 1] = run
                ready = true  -- another task may take the slot
            end
            add_run(passage, lines, at, duration)
            if kind.state == COMPLETED then
                local old = sub(record, 1, STARTED_AT - 1)
                local new = beginnings[old] or ended_beginning(kind, old)
                finish(id, new .. started_at .. sub(record, READY_AT, LANE - 1) .. ending .. item, COMPLETED)
                if kind.again then
                    later('HDEL', ERRORS, id)
                end
            else
                apply_move(id, record, kind, started_at, item)
                ready = ready or kind.state == QUEUED
            end
        end
    end
end

-- Return the worker that reported an item.
local function worker_of_item(i)
    for _, kind in ipairs(kinds) do
        if i <= kind.count then
            return kind.worker
        end
        i = i - kind.count
    end
end

-- Return the runs that ended, by type.
local function runs_by_type()
    local found = {}
    for lane, runs in pairs(runs_by_lane) do
        local type = type_of(lane)
        local all = found[type] or {good = 0, bad = 0}
        found[type] = {good = all.good + runs.good, bad = all.bad + runs.bad}
    end
    return found
end

-- A worker that reports late no longer runs the task, so its lingering slot is free.
if not reaping then
    for _, i in ipairs(late) do
        local worker, run = worker_of_item(i), sub(lines, LINE * i - LINE + 1, LINE * i - LINE + 20)
        local place = call('HGET', LINGERING .. worker, run)
        if place then
            later('HDEL', LINGERING .. worker, run)
            later('SREM', slots_of(place), run)
            gone[run] = true
            ready = true
        end
    end
end

if breakers and count_runs(runs_by_type(), gone) then
    -- An opened circuit sets a new time for the next claim, so waiting workers must wake up too.
    ready = true
end
release_dependents()
update_streams()
post()
if ready or freed > 0 or bonds_left == 0 then
    wake()
end
return late
