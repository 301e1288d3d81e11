#!lua flags=no-writes
-- Find tasks in states that have few tasks.
-- ARGV: '+', or '(' and the id below which to continue; the largest number of tasks (the limit); states
--       (one byte each); a worker id ('' for any); the number of lanes (0 for all), then the lanes.
-- Returns packed ids per state, unordered. Together they contain the newest tasks in those states, up to
--       the limit, and possibly other tasks. Returns nothing if a set that is not ordered by id has more
--       tasks than the limit.
local below, most, states, worker, lane_count = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])

-- Return the packed fields of a hash, unless there are too many.
local function keys_of(hash)
    return call('HLEN', hash) <= most and table.concat(call('HKEYS', hash))
end

-- Return the packed ids of those streams that are in the lanes, unless there are too many. `set` is the
-- key of a stream's tasks, without its name.
local function ids_of(streams, set)
    local lanes, count, chosen = {}, 0, {}
    for i = 6, 5 + lane_count do
        lanes[ARGV[i]] = true
    end
    for _, stream in ipairs(streams) do
        if lane_count == 0 or lanes[string.match(stream, '%d+')] then
            chosen[#chosen + 1] = stream
            count = count + call('ZCARD', set .. stream)
            if count > most then
                return
            end
        end
    end
    for i, stream in ipairs(chosen) do
        chosen[i] = table.concat(call('ZRANGE', set .. stream, 0, -1))
    end
    return table.concat(chosen)
end

local function executing()
    local ids, count = {}, 0
    for _, each in ipairs(worker ~= '' and {worker} or call('ZRANGE', WORKERS, 0, -1)) do
        count = count + call('SCARD', HELD .. each)
        if count > most then
            return
        end
        for _, run in ipairs(call('SMEMBERS', HELD .. each)) do
            ids[#ids + 1] = sub(run, 1, 16)
        end
    end
    return table.concat(ids)
end

-- Tasks that wait until they are due, or for their parents.
local function waiting()
    local bound = keys_of(BONDS)
    local due = ids_of(call('ZRANGE', DUE_STREAMS, 0, -1), DUE)
    return bound and due and bound .. due
end

local function ids_in_state(state)
    if state == QUEUED then
        return ids_of(call('SMEMBERS', STREAMS), QUEUE)
    elseif state == EXECUTING then
        return executing()
    elseif state == SCHEDULED or state == RETRYING then
        return waiting()
    elseif state == COMPLETED then
        return keys_of(FINISHED)
    end
    return table.concat(call('ZRANGE', ENDED_BADLY .. state, below, '-', 'BYLEX', 'REV', 'LIMIT', 0, most))
end

local found = {}
for i = 1, #states do
    found[i] = ids_in_state(byte(states, i))
    if not found[i] then
        return {}
    end
end
return found
