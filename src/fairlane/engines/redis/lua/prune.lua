#!lua flags=allow-oom
-- needs: record accounting moves deletion document_writes
-- Delete what is older than its retention, up to a batch of each kind.
-- ARGV: the retention in microseconds of dead workers and of journal entries, then pairs of a terminal
--       state and the retention of tasks in it.
-- Returns the number of deleted tasks, and 1 if there is more to delete, else 0.
local MOST_BYTES, AT_ONCE, MOST_LOOKED_AT = 8000000, 50, 20000
local removed, checked, bytes, looked_at, more = 0, 0, 0, 0, false

-- The number of this round, if tasks depend on others.
local round = call('EXISTS', PARENTS) == 1 and call('HINCRBY', META, 'prunes', 1)

-- Return whether a task is to be kept, because one that depends on it has not ended. See
-- core/retention.py.
local function is_needed(id)
    local children = call('SRANDMEMBER', DEPENDENTS .. id, LOOKED_AT)
    for _, child in ipairs(children) do
        looked_at = looked_at + 1
        if call('HEXISTS', FINISHED, child) == 0 and call('HEXISTS', TASKS, child) == 1 then
            return true
        end
    end
    if #children == LOOKED_AT and call('SCARD', DEPENDENTS .. id) > LOOKED_AT then
        call('SREM', DEPENDENTS .. id, unpack(children))
        return true
    end
    return false
end

-- Delete a task whose retention is over.
local function delete(id, record)
    local state = byte(record)
    removed = removed + 1
    remove(id, state)
    if state ~= COMPLETED then
        leave_fence(id, record, time_of(record, UPDATED_AT))
    end
    count_only(place_of(record), state .. ':0::-1')
end

-- Delete those of a few tasks that ended in this state at this time, or put them aside if they must be
-- kept. A task that was replayed since is left; its new end has its own entry. Return whether all tasks
-- were checked.
local function delete_ended(ids, state, ended_at)
    local are_parents = round and call('SMISMEMBER', PARENTS, unpack(ids))
    for i, record in ipairs(call('HMGET', FINISHED, unpack(ids))) do
        checked = checked + 1
        if record then
            bytes = bytes + #record
            if byte(record) == state and bytes_of(record, UPDATED_AT) == ended_at then
                if removed == BATCH or looked_at > MOST_LOOKED_AT then
                    return false
                elseif round and are_parents[i] == 1 and is_needed(ids[i]) then
                    later('ZADD', KEPT, round, ids[i])
                else
                    delete(ids[i], record)
                end
            end
        end
    end
    return true
end

-- Delete the tasks of an entry. Return false if some are left; the next prune reads the entry again.
local function delete_entry(packed, state, at)
    local ended_at = pack('>I8', tonumber(at))
    for from = 1, #packed, 16 * AT_ONCE do
        if bytes > MOST_BYTES or checked >= 4 * BATCH then
            return false
        end
        local ids = {}
        for start = from, math.min(from + 16 * AT_ONCE, #packed) - 1, 16 do
            ids[#ids + 1] = sub(packed, start, start + 15)
        end
        if not delete_ended(ids, state, ended_at) then
            return false
        end
    end
    return true
end

-- Look again at tasks that earlier rounds have kept: those first that were not looked at for the longest
-- time. One that was replayed since is left, and has an entry once it has ended again. The retention may
-- have become longer.
local function delete_kept(retention_of)
    local kept, before = call('ZRANGE', KEPT, '-inf', '(' .. round, 'BYSCORE', 'LIMIT', 0, BATCH), removed
    for from = 1, #kept, AT_ONCE do
        if removed + AT_ONCE > BATCH or bytes > MOST_BYTES or looked_at > MOST_LOOKED_AT then
            more = true
            return
        end
        local ids = {unpack(kept, from, math.min(from + AT_ONCE - 1, #kept))}
        for i, record in ipairs(call('HMGET', FINISHED, unpack(ids))) do
            bytes = bytes + (record and #record or 0)
            if not record then
                later('ZREM', KEPT, ids[i])
            elseif time_of(record, UPDATED_AT) > now - retention_of[byte(record)] or is_needed(ids[i]) then
                later('ZADD', KEPT, round, ids[i])
            else
                delete(ids[i], record)
            end
        end
    end
    more = more or (#kept == BATCH and removed > before)
end

-- Delete the entries of a stream before a deadline, oldest first, at most a batch, until `take` returns
-- false for an entry. An entry holds one task or hundreds of them. So the first read takes one entry, and
-- each further read twice as many.
local function trim(key, deadline, take)
    local last, seen, size = nil, 0, 1
    local function take_entries(entries)
        for _, entry in ipairs(entries) do
            if tonumber(entry[2][2]) > deadline then
                return false
            elseif not take(entry[2]) then
                more = true
                return false
            end
            seen, last = seen + 1, entry[1]
        end
        more = more or seen >= BATCH
        return #entries > 0 and seen < BATCH
    end
    while take_entries(call('XRANGE', key, last and '(' .. last or '-', '+', 'COUNT', size)) do
        size = math.min(2 * size, AT_ONCE, BATCH - seen)
    end
    if last then
        local before, number = string.match(last, '(%d+)-(%d+)')
        call('XTRIM', key, 'MINID', '=', before .. '-' .. whole(number + 1))
    end
end

-- Return members of a sorted set with a time before the deadline, at most a batch.
local function members_until(key, deadline)
    local found = call('ZRANGE', key, '-inf', whole(deadline), 'BYSCORE', 'LIMIT', 0, BATCH)
    more = more or #found == BATCH
    return found
end

local retention_of = {}
for i = 3, #ARGV, 2 do
    local state = tonumber(ARGV[i])
    retention_of[state] = tonumber(ARGV[i + 1])
    trim(ENDED .. state, now - ARGV[i + 1], function(fields)
        return removed < BATCH and delete_entry(fields[4], state, fields[2])
    end)
end
write_removed()
if round then
    delete_kept(retention_of)
    write_removed()
end

for _, key in ipairs(members_until(IDEMPOTENCY_ENDS, now)) do
    later('HDEL', IDEMPOTENCY, key)
    later('ZREM', IDEMPOTENCY_ENDS, key)
end
for _, worker in ipairs(members_until(DEAD_WORKERS, now - ARGV[1])) do
    if call('EXISTS', HELD .. worker) == 0 then
        free_lingering_slots(worker)
        later('DEL', WORKER_HASH .. worker)
        later('ZREM', WORKERS, worker)
        later('ZREM', DEAD_WORKERS, worker)
    end
end
more = expire(SAMPLE, BATCH) == BATCH or more
more = expire(FENCE, BATCH) == BATCH or more
write()
trim(JOURNAL, now - ARGV[2], function()
    return true
end)
-- Entries differ in size, so the journal is limited in bytes as well.
if call('EXISTS', JOURNAL) == 1 then
    local size = call('MEMORY', 'USAGE', JOURNAL, 'SAMPLES', 0)
    if size > JOURNAL_BYTES then
        call('XTRIM', JOURNAL, 'MAXLEN', '=', math.floor(call('XLEN', JOURNAL) * JOURNAL_BYTES / size))
    end
end
post()
return {removed, more and 1 or 0}
