-- Store new tasks, all or none. The last part of `submit` and `submit_along`.
-- ARGV: the version of the catalogue, the lifetime of an idempotency key in microseconds, the smallest
--       task id, the numbers of groups, tasks and special tasks, the ids that were found to be stored
--       already under the same type and payload, '1' if somebody chose an id (else '0'), '1' if a payload is
--       not encrypted (else '0'), '1' for `submit_along` (else '0');
--       per group: lane and level in bytes, number of tasks, delay in microseconds, run_at in bytes ('' if
--       the delay counts);
--       per task, group by group: id, body (see record.py);
--       per special task (with a key or parents), in the order of the batch: its position in ids;
--       idempotency key ('' for none), fingerprint; unique key and states in bytes ('' for none), period
--       in microseconds ('' for none), mode; parents: '' for none, else '1' if tolerant or '0' if not,
--       then per parent its id, and in two bytes its position if it is earlier in the batch, else 0;
--       for `submit_along` the ids of tasks to be cancelled, and the documents, as `prepare_documents` says.
-- Returns {'stored', now, the state of each group, pairs of position and state for tasks with another
--       state, and for tasks that are not stored: position, id of the earlier task, its state, its
--       created_at}; or {'stale'} for another version of the catalogue; or {reason} for a refusal; or
--       {'known', ids} if further ids are stored already; or {'overtaken'} if a document has changed.
local known_version, window = ARGV[1], tonumber(ARGV[2])
local groups, tasks, specials = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local first_group, first_task = 11, 11 + 4 * groups
local first_special = first_task + 2 * tasks
local after_specials = first_special + 7 * specials

if catalogue_version ~= known_version then
    return {'stale'}
end
if ARGV[9] == '1' and call('HEXISTS', DOCUMENTS .. ENCRYPTION, REQUIRED) == 1 then
    return {'plain'}
end

local ids = {}
for i = 1, tasks do
    ids[i] = ARGV[first_task + 2 * i - 2]
end

-- Tasks of the batch that are answered with an earlier task, by position. First those whose ids are
-- stored already: the client repeats a submission because it did not get the answer.
local known, known_positions = {}, {}
local function answer_with(position, id)
    known[position] = id
    known_positions[#known_positions + 1] = position
end
-- Ids grow with time, so most batches have larger ids than everything stored.
if #call('ZRANGE', INDEX, '[' .. ARGV[3], '+', 'BYLEX', 'LIMIT', 0, 1) > 0 then
    local compared, others = {}, {}
    for at = 1, #ARGV[7], 16 do
        compared[sub(ARGV[7], at, at + 15)] = true
    end
    for i, stored in ipairs(call('HMGET', TASKS, unpack(ids))) do
        if stored then
            answer_with(i, ids[i])
            if not compared[ids[i]] then
                others[#others + 1] = ids[i]
            end
        end
    end
    if #others > 0 then
        return {'known', others}
    end
end

-- The initial states of tasks with parents, by id: CANCELLED for doomed tasks; SCHEDULED for those that
-- wait, with their bonds. A task without a pending or failed parent is stored like any other.
local initial_states, bonds = {}, {}

do  -- a block, because a script has room for 200 local names
    -- Decide the initial state of a task with parents. Return false if a parent does not exist.
    local function decide_initial_state(id, parents)
        local pending = {sub(parents, 1, 1)}
        for at = 2, #parents, 18 do
            local parent, position = sub(parents, at, at + 15), read('>H', parents, at + 16)
            local state
            if position > 0 and not known[position] then
                state = initial_states[parent] or QUEUED
            elseif position == 0 or known[position] == parent then
                state = parent_state(parent)
            end
            if not state then
                return false
            end
            local found = dependency_on(state, pending[1])
            if found == 'broken' then
                initial_states[id] = CANCELLED
            elseif found == 'pending' then
                pending[#pending + 1] = parent
            end
        end
        if #pending > 1 and not initial_states[id] then
            initial_states[id] = SCHEDULED
            bonds[id] = pending
        end
        return true
    end

    -- Admit one special task: answer it with an earlier task, or let it take its keys. Return a reason if
    -- the whole batch must be refused.
    local function admit(s)
        local position, key, fingerprint, hold = tonumber(ARGV[s]), ARGV[s + 1], ARGV[s + 2], ARGV[s + 3]
        local id = ids[position]
        if known[position] then
            return
        end
        local earlier = key ~= '' and key_holder(key)
        if earlier then
            if earlier.fingerprint ~= fingerprint then
                return 'conflict'
            end
            answer_with(position, earlier.id)
            return
        end
        if hold ~= '' then
            local mode = ARGV[s + 5]
            local duplicate, record = duplicate_of(hold, ARGV[s + 4])
            if duplicate and mode == 'existing' then
                answer_with(position, duplicate)
                return
            elseif record and mode == 'replace' and is_waiting(record) then
                replaced[#replaced + 1] = {duplicate, record}
                known_states[duplicate] = MOVE_REPLACE.state
            elseif duplicate then
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
    for s = first_special, after_specials - 1, 7 do
        local refusal = admit(s)
        if refusal then
            return {refusal}
        end
    end
    -- Parents come second, because any task of the batch can replace a parent.
    for s = first_special, after_specials - 1, 7 do
        local position, parents = tonumber(ARGV[s]), ARGV[s + 6]
        if parents ~= '' and not known[position] and not decide_initial_state(ids[position], parents) then
            return {'unknown'}
        end
    end
end

if ARGV[10] == '1' then
    local prepared = prepare_documents(after_specials + 1)
    if prepared ~= 'done' then
        return {prepared}
    end
end

-- Delete expired idempotency keys, at most two for each new one.
if next(taken_keys) then
    for _, key in ipairs(call('ZRANGE', IDEMPOTENCY_ENDS, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, 2 * specials)) do
        if not taken_keys[key] then
            later('HDEL', IDEMPOTENCY, key)
            later('ZREM', IDEMPOTENCY_ENDS, key)
        end
    end
end

local FIRST_ATTEMPT, FIRST_VERSION = '\0\0\0\0', '\0\0\0\1'
local EXPIRY = EXPIRES_AT - RETRIES + 1  -- its position in a body
local stored, index = gathered('HSET', TASKS), gathered('ZADD', INDEX)  -- always of the same length
local states, position, ready, doomed, other_states, children_of = {}, 0, false, {}, {}, {}

-- Return the passage of new tasks.
local function submit_passage(place, state)
    local passage = passage_for('submit', place, '', '0:' .. state .. '::-1')
    passage.between = FIRST_ATTEMPT .. UNTIMED
    return passage
end

-- Return the fields of a new record before RETRIES.
local function first_head(state, due_at, ready_at, run_at)
    return char(state) .. FIRST_VERSION .. stamp .. due_at .. NONE .. NONE .. ready_at .. run_at .. stamp
end

-- Store a task that waits for its parents, or is doomed.
local function store_dependent(id, i, place, task)
    later('HSET', TASKS, id, task)
    other_states[#other_states + 1] = {i, initial_states[id]}
    add_task(submit_passage(place, SCHEDULED), id)
    if initial_states[id] == CANCELLED then
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

-- Store the tasks of a group, which begins at ARGV[g].
local function store_group(g)
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
    local wait_queue = gathered('ZADD', (scheduled and DUE or QUEUE) .. stream)
    local score, passage, lines = whole(read('>i8', ready_at)), nil, nil
    for i = position + 1, position + count_here do
        if not known[i] then
            local id, body = ids[i], ARGV[first_task + 2 * i - 1]
            local initial_state = initial_states[id]
            local at, next = #index + 1, #wait_queue + 1
            index[at], index[at + 1] = '0', id
            if initial_state then
                store_dependent(id, i, place, first_head(SCHEDULED, NONE, ready_at, run_at) .. body)
            else
                if not passage then
                    passage = submit_passage(place, state)
                    lines = passage.lines
                end
                stored[at], stored[at + 1] = id, head .. body
                wait_queue[next], wait_queue[next + 1] = score, id
                lines[#lines + 1] = id
            end
            if sub(body, EXPIRY, EXPIRY + 7) ~= NONE and initial_state ~= CANCELLED then
                later('ZADD', EXPIRING, whole(read('>i8', body, EXPIRY)), id)
            end
        end
    end
    if passage and scheduled then
        due_streams_changed[stream] = true
    elseif passage then
        later('SADD', STREAMS, stream)
        ready = true
    end
    position = position + count_here
end

for g = first_group, first_task - 1, 4 do
    store_group(g)
end

-- Note who depends on whom.
for s = first_special, after_specials - 1, 7 do
    local at, parents = tonumber(ARGV[s]), ARGV[s + 6]
    if parents ~= '' and not known[at] and initial_states[ids[at]] ~= CANCELLED then
        for p = 2, #parents, 18 do
            local parent = sub(parents, p, p + 15)
            later('SADD', PARENTS, parent)
            later('SADD', DEPENDENTS .. parent, ids[at])
        end
    end
end

write()

-- The attempts of a task go on from those of a deleted task with the same id.
if ARGV[8] == '1' and call('EXISTS', DOCUMENTS .. FENCE) == 1 then
    local names = {}
    for i, id in ipairs(ids) do
        names[i] = text_of(id)
    end
    local records = live_records(ids)
    for i, fence in ipairs(call('HMGET', DOCUMENTS .. FENCE, unpack(names))) do
        if fence and not known[i] and initial_states[ids[i]] ~= CANCELLED and read('>i8', fence, 17) > now then
            local attempt = pack('>I4', tonumber(sub(fence, 26)))
            later('HSET', LIVE, ids[i], sub(records[i], 1, ATTEMPT - 1) .. attempt .. sub(records[i], WORKER))
        end
    end
    write()
end
for _, each in ipairs(replaced) do
    end_by(MOVE_REPLACE, each[1], each[2])
end
for _, each in ipairs(doomed) do
    end_by(MOVE_DOOM, each[1], each[2])
end
if ARGV[10] == '1' then
    local ended = {}
    for at = 1, #ARGV[after_specials], 16 do
        ended[#ended + 1] = sub(ARGV[after_specials], at, at + 15)
    end
    for i, record in ipairs(all_records(ended)) do
        if record and leads_from(MOVE_CANCEL, record) then
            end_by(MOVE_CANCEL, ended[i], record)
        end
    end
end
release_dependents()
update_streams()
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
return {'stored', now_text, states, other_states, answers}
