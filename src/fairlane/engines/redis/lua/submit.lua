#!lua
-- needs: record books moves
-- ARGV: version of the catalogue, microseconds an idempotency key lasts,
--       number of groups, of tasks, of keys,
--       per group: lane and level, tasks, delay in microseconds, run_at in bytes (or '' for a delay),
--       per task, group by group: id, body (see record.py),
--       per key: position of its task, key, fingerprint.
local known_version, window = ARGV[1], tonumber(ARGV[2])
local groups, tasks, keys = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local first_group, first_task = 6, 6 + 4 * groups
local first_key = first_task + 2 * tasks

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
for i, stored in ipairs(call('HMGET', TASKS, unpack(ids))) do
    if stored then
        answer_with(i, ids[i])
    end
end

-- Who holds an idempotency key: an earlier task within its window, or one of this very batch.
local taken = {}
local function holder_of(key)
    if taken[key] then
        return taken[key]
    end
    local stored = call('HGET', IDEMPOTENCY, key)
    if stored and read('>I8', stored, 33) > now and call('HEXISTS', TASKS, sub(stored, 1, 16)) == 1 then
        return {id = sub(stored, 1, 16), fingerprint = sub(stored, 17, 32)}
    end
end

for k = first_key, #ARGV, 3 do
    local position, key, fingerprint = tonumber(ARGV[k]), ARGV[k + 1], ARGV[k + 2]
    if not known[position] then
        local earlier = holder_of(key)
        if not earlier then
            taken[key] = {id = ids[position], fingerprint = fingerprint}
            later('HSET', IDEMPOTENCY, key, ids[position] .. fingerprint .. pack('>I8', now + window))
            later('ZADD', IDEMPOTENCY_ENDS, whole(now + window), key)
        elseif earlier.fingerprint == fingerprint then
            answer_with(position, earlier.id)
        else
            return {'conflict'}
        end
    end
end

-- Keys whose window is over make room for the new ones.
if keys > 0 then
    for _, key in ipairs(call('ZRANGE', IDEMPOTENCY_ENDS, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, 2 * keys)) do
        if not taken[key] then
            later('HDEL', IDEMPOTENCY, key)
            later('ZREM', IDEMPOTENCY_ENDS, key)
        end
    end
end

local FIRST_ATTEMPT, FIRST_VERSION = '\0\0\0\0', '\0\0\0\1'
local EXPIRY = EXPIRES_AT - RETRIES + 1  -- where it stands in a body
local states, position, ready = {}, 0, false
for g = first_group, first_task - 1, 4 do
    local place, count_here, delay, run_at = ARGV[g], tonumber(ARGV[g + 1]), tonumber(ARGV[g + 2]), ARGV[g + 3]
    if run_at == '' then
        run_at = pack('>I8', now + delay)
    end
    local scheduled = read('>i8', run_at) > now
    local state = scheduled and SCHEDULED or QUEUED
    states[#states + 1] = state
    local ready_at = scheduled and run_at or stamp
    local due_at = scheduled and run_at or NONE
    local head = char(state) .. FIRST_VERSION .. stamp .. due_at .. NONE .. NONE .. ready_at .. run_at .. stamp
    local stream = stream_of(place)
    local line_up, score = scheduled and DUE or QUEUE .. stream, whole(read('>i8', ready_at))
    local through
    for i = position + 1, position + count_here do
        if not known[i] then
            local id, body = ids[i], ARGV[first_task + 2 * i - 1]
            later('HSET', TASKS, id, head .. body)
            later('ZADD', line_up, score, id)
            if sub(body, EXPIRY, EXPIRY + 7) ~= NONE then
                later('ZADD', EXPIRING, whole(read('>i8', body, EXPIRY)), id)
            end
            through = through or passage('submit', place, '', '0:' .. state .. '::-1')
            note(through, id .. FIRST_ATTEMPT)
        end
    end
    if through and not scheduled then
        later('SADD', STREAMS, stream)
        ready = true
    end
    position = position + count_here
end

write()
post()
if ready then
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
return {'stored', now_text, states, answers}
