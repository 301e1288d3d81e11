#!lua
-- needs: record accounting moves dependents admission
-- ARGV: version of the catalogue, microseconds an idempotency key lasts, the smallest id, number of
--       groups, of tasks, of special tasks,
--       per group: lane and level, tasks, delay in microseconds, run_at in bytes (or '' for a delay),
--       per task, group by group: id, body (see record.py),
--       per special task, in the order of the batch: its position; idempotency key ('' for none),
--       fingerprint; unique key and states ('' for none), period ('' for none), mode; parents: '' for
--       none, or '1' if tolerant and '0' if not, then per parent its id, and in two bytes its position
--       if it comes earlier in the batch, or 0.
local known_version, window = ARGV[1], tonumber(ARGV[2])
local groups, tasks, specials = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local first_group, first_task = 7, 7 + 4 * groups
local first_special = first_task + 2 * tasks

if catalogue_version ~= known_version then
    return {'stale'}
end

local ids = {}
for i = 1, tasks do
    ids[i] = ARGV[first_task + 2 * i - 2]
end

-- Tasks that are stored already, by position: their submission is repeated, its answer got lost.
local known, known_positions = {}, {}
local function answer_with(position, id)
    known[position] = id
    known_positions[#known_positions + 1] = position
end
-- Ids grow with time, so most batches lie beyond everything that is stored.
if #call('ZRANGE', INDEX, '[' .. ARGV[3], '+', 'BYLEX', 'LIMIT', 0, 1) > 0 then
    for i, stored in ipairs(call('HMGET', TASKS, unpack(ids))) do
        if stored then
            answer_with(i, ids[i])
        end
    end
end

-- What becomes of tasks with parents, by id: CANCELLED for the doomed; SCHEDULED for those that wait,
-- with their bonds. Those whose parents have all ended well are like any other.
local fates, bonds = {}, {}

-- False when there is no such parent. See core/dependencies.py, bond().
local function decide_fate(id, parents)
    local pending = {sub(parents, 1, 1)}
    for at = 2, #parents, 18 do
        local parent, position = sub(parents, at, at + 15), read('>H', parents, at + 16)
        local state
        if position > 0 and not known[position] then
            state = fates[parent] or QUEUED
        elseif position == 0 or known[position] == parent then
            state = state_of(parent)
        end
        if not state then
            return false
        elseif state == FAILED or state == DEAD_LETTER or state == CANCELLED then
            if pending[1] == '0' then
                fates[id] = CANCELLED
            end
        elseif state ~= COMPLETED then
            pending[#pending + 1] = parent
        end
    end
    if #pending > 1 and not fates[id] then
        fates[id] = SCHEDULED
        bonds[id] = pending
    end
    return true
end

-- A reason to refuse the whole batch, or nothing.
local function admit(s)
    local position, key, fingerprint, hold = tonumber(ARGV[s]), ARGV[s + 1], ARGV[s + 2], ARGV[s + 3]
    local id = ids[position]
    if known[position] then
        return
    end
    local earlier = key ~= '' and holder_of(key)
    if earlier then
        if earlier.fingerprint ~= fingerprint then
            return 'conflict'
        end
        answer_with(position, earlier.id)
        return
    end
    if hold ~= '' then
        local mode = ARGV[s + 5]
        local double, record = double_of(hold, ARGV[s + 4])
        if double and mode == 'existing' then
            answer_with(position, double)
            return
        elseif record and mode == 'replace' and waits(record) then
            replaced[#replaced + 1] = {double, record}
            known_states[double] = MOVE_REPLACE.state
        elseif double then
            return 'duplicate'
        end
    end
    if key ~= '' then
        take_key(key, id, fingerprint, window)
    end
    if hold ~= '' then
        take_hold(hold, id)
    end
end
for s = first_special, #ARGV, 7 do
    local refusal = admit(s)
    if refusal then
        return {refusal}
    end
end
-- Only now is it known which tasks are replaced, wherever in the batch that happens.
for s = first_special, #ARGV, 7 do
    local position, parents = tonumber(ARGV[s]), ARGV[s + 6]
    if parents ~= '' and not known[position] and not decide_fate(ids[position], parents) then
        return {'unknown'}
    end
end

-- Keys whose window is over make room for the new ones.
if next(taken_keys) then
    for _, key in ipairs(call('ZRANGE', IDEMPOTENCY_ENDS, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, 2 * specials)) do
        if not taken_keys[key] then
            later('HDEL', IDEMPOTENCY, key)
            later('ZREM', IDEMPOTENCY_ENDS, key)
        end
    end
end

local FIRST_ATTEMPT, FIRST_VERSION = '\0\0\0\0', '\0\0\0\1'
local EXPIRY = EXPIRES_AT - RETRIES + 1  -- where it stands in a body
local stored, index = gathered('HSET', TASKS), gathered('ZADD', INDEX)  -- always of one length
local states, position, ready, doomed, told_apart, children_of = {}, 0, false, {}, {}, {}

local function entering(place, state)
    local through = passage('submit', place, '', '0:' .. state .. '::-1')
    through.between = FIRST_ATTEMPT .. UNTIMED
    return through
end

-- How a record begins, up to RETRIES.
local function first_head(state, due_at, ready_at, run_at)
    return char(state) .. FIRST_VERSION .. stamp .. due_at .. NONE .. NONE .. ready_at .. run_at .. stamp
end

-- A task that waits for others, or will never run.
local function store_bound(id, i, place, task)
    later('HSET', TASKS, id, task)
    told_apart[#told_apart + 1] = {i, fates[id]}
    note(entering(place, SCHEDULED), id)
    if fates[id] == CANCELLED then
        doomed[#doomed + 1] = {id, sub(task, 1, HEAD)}
        return
    end
    local bond = bonds[id]
    later('HSET', BONDS, id, table.concat(bond))
    for p = 2, #bond do
        local children = children_of[bond[p]]
        if not children then
            children = gathered('SADD', CHILDREN .. bond[p])
            children_of[bond[p]] = children
        end
        children[#children + 1] = id
    end
end

for g = first_group, first_task - 1, 4 do
    local place, count_here, delay, run_at = ARGV[g], tonumber(ARGV[g + 1]), tonumber(ARGV[g + 2]), ARGV[g + 3]
    if run_at == '' then
        run_at = pack('>I8', now + delay)
    end
    local scheduled = read('>i8', run_at) > now
    local state = scheduled and SCHEDULED or QUEUED
    states[#states + 1] = state
    local ready_at = scheduled and run_at or stamp
    local head = first_head(state, scheduled and run_at or NONE, ready_at, run_at)
    local stream = stream_of(place)
    local line_up = gathered('ZADD', scheduled and DUE or QUEUE .. stream)
    local score, through, lines = whole(read('>i8', ready_at)), nil, nil
    for i = position + 1, position + count_here do
        if not known[i] then
            local id, body = ids[i], ARGV[first_task + 2 * i - 1]
            local fate = fates[id]
            local at, next = #index + 1, #line_up + 1
            index[at], index[at + 1] = '0', id
            if fate then
                store_bound(id, i, place, first_head(SCHEDULED, NONE, ready_at, run_at) .. body)
            else
                if not through then
                    through = entering(place, state)
                    lines = through.lines
                end
                stored[at], stored[at + 1] = id, head .. body
                line_up[next], line_up[next + 1] = score, id
                lines[#lines + 1] = id
            end
            if sub(body, EXPIRY, EXPIRY + 7) ~= NONE and fate ~= CANCELLED then
                later('ZADD', EXPIRING, whole(read('>i8', body, EXPIRY)), id)
            end
        end
    end
    if through and not scheduled then
        later('SADD', STREAMS, stream)
        ready = true
    end
    position = position + count_here
end

write()
for _, each in ipairs(replaced) do
    end_by(MOVE_REPLACE, each[1], each[2])
end
for _, each in ipairs(doomed) do
    end_by(MOVE_DOOM, each[1], each[2])
end
release_dependents()
drop_empty_streams()
post()
if ready or freed > 0 or bonds_left == 0 then
    wake()
end

local earlier = {}
for i, position in ipairs(known_positions) do
    earlier[i] = known[position]
end
local answers = {}
for i, record in ipairs(all_records(earlier)) do
    answers[i] = {known_positions[i], earlier[i], byte(record), whole(time_of(record, CREATED_AT))}
end
return {'stored', now_text, states, told_apart, answers}
