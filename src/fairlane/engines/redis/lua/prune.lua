#!lua flags=allow-oom
-- needs: record accounting moves deletion documents
-- ARGV: for how many microseconds dead workers and entries of the journal are kept, then pairs of a state
--       that is an end, and for how long tasks are kept in it.
local MOST_BYTES, AT_ONCE = 8000000, 50
local removed, looked_at, bytes, more = 0, 0, 0, false

-- Take away those of a few tasks that ended in a state at a time. (What was replayed since, or ended
-- again, is told elsewhere or not at all.) Answers whether all of them were looked at.
local function take_away(ids, state, ended_at)
    for i, record in ipairs(call('HMGET', FINISHED, unpack(ids))) do
        looked_at = looked_at + 1
        if record then
            bytes = bytes + #record
            if byte(record) == state and bytes_of(record, UPDATED_AT) == ended_at then
                if removed == BATCH then
                    return false
                end
                removed = removed + 1
                remove(ids[i], state)
                count_only(place_of(record), state .. ':0::-1')
            end
        end
    end
    return true
end

-- The same for all of an entry. One that is not done with is read again next time.
local function take_away_all(packed, state, at)
    local ended_at = pack('>I8', tonumber(at))
    for from = 1, #packed, 16 * AT_ONCE do
        if bytes > MOST_BYTES or looked_at >= 4 * BATCH then
            return false
        end
        local ids = {}
        for start = from, math.min(from + 16 * AT_ONCE, #packed) - 1, 16 do
            ids[#ids + 1] = sub(packed, start, start + 15)
        end
        if not take_away(ids, state, ended_at) then
            return false
        end
    end
    return true
end

-- Forget the entries of a stream that are old enough, from the oldest on, as long as `take` takes what
-- they tell of; at most a batch of them. An entry may tell of one task or of hundreds: so one is read at
-- first, and twice as many each time.
local function trim(key, deadline, take)
    local last, seen, size = nil, 0, 1
    local function go_on(entries)
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
    while go_on(call('XRANGE', key, last and '(' .. last or '-', '+', 'COUNT', size)) do
        size = math.min(2 * size, AT_ONCE, BATCH - seen)
    end
    if last then
        local before, number = string.match(last, '(%d+)-(%d+)')
        call('XTRIM', key, 'MINID', '=', before .. '-' .. whole(number + 1))
    end
end

-- Members of a sorted set whose time is over.
local function over(key, deadline)
    local found = call('ZRANGE', key, '-inf', whole(deadline), 'BYSCORE', 'LIMIT', 0, BATCH)
    more = more or #found == BATCH
    return found
end

for i = 3, #ARGV, 2 do
    local state = tonumber(ARGV[i])
    trim(ENDED .. state, now - ARGV[i + 1], function(fields)
        return removed < BATCH and take_away_all(fields[4], state, fields[2])
    end)
end
write_removed()

for _, key in ipairs(over(IDEMPOTENCY_ENDS, now)) do
    later('HDEL', IDEMPOTENCY, key)
    later('ZREM', IDEMPOTENCY_ENDS, key)
end
for _, worker in ipairs(over(DEAD_WORKERS, now - ARGV[1])) do
    if call('EXISTS', HELD .. worker) == 0 then
        free_lingering_slots(worker)
        later('DEL', WORKER_HASH .. worker)
        later('ZREM', WORKERS, worker)
        later('ZREM', DEAD_WORKERS, worker)
    end
end
more = expire(SAMPLE, BATCH) == BATCH or more
write()
trim(JOURNAL, now - ARGV[2], function()
    return true
end)
-- Its entries differ in weight: where they are heavy, fewer are kept.
if call('EXISTS', JOURNAL) == 1 then
    local weight = call('MEMORY', 'USAGE', JOURNAL, 'SAMPLES', 0)
    if weight > JOURNAL_BYTES then
        call('XTRIM', JOURNAL, 'MAXLEN', '=', math.floor(call('XLEN', JOURNAL) * JOURNAL_BYTES / weight))
    end
end
post()
return {removed, more and 1 or 0}
