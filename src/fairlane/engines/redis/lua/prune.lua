#!lua flags=allow-oom
-- needs: record accounting moves deletion document_writes
-- Delete what is older than its retention, up to a batch of each kind.
-- ARGV: the retention in microseconds of dead workers and of journal entries, then pairs of a terminal
--       state and the retention of tasks in it.
-- Returns the number of deleted tasks, and 1 if there is more to delete, else 0.
local MOST_BYTES, AT_ONCE = 8000000, 50
local removed, checked, bytes, more = 0, 0, 0, false

-- Delete those of a few tasks that ended in this state at this time. A task that was replayed since is
-- kept; its new end has its own entry. Return whether all tasks were checked.
local function delete_ended(ids, state, ended_at)
    for i, record in ipairs(call('HMGET', FINISHED, unpack(ids))) do
        checked = checked + 1
        if record then
            bytes = bytes + #record
            if byte(record) == state and bytes_of(record, UPDATED_AT) == ended_at then
                if removed == BATCH then
                    return false
                end
                removed = removed + 1
                remove(ids[i], state)
                if state ~= COMPLETED then
                    leave_fence(ids[i], record, time_of(record, UPDATED_AT))
                end
                count_only(place_of(record), state .. ':0::-1')
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

for i = 3, #ARGV, 2 do
    local state = tonumber(ARGV[i])
    trim(ENDED .. state, now - ARGV[i + 1], function(fields)
        return removed < BATCH and delete_entry(fields[4], state, fields[2])
    end)
end
write_removed()

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
