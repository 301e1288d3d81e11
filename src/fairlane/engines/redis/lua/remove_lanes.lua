#!lua
-- needs: catalogue
-- ARGV: per lane its key (JSON), its number, the number of its counters, then their fields and values as
--       they were read. Returns how many lanes were removed; one that was used since stays.

-- Return whether no task was submitted to the lane since its counters were read. A task comes into an
-- empty lane in no other way, and every submission is counted.
local function is_unused(lane, counted)
    local fields = {}
    for level = 0, HIGHEST_LEVEL do
        for state = SCHEDULED, CANCELLED do
            fields[#fields + 1] = lane .. ':' .. level .. ':' .. NOWHERE .. ':' .. state .. '::-1'
        end
    end
    for i, times in ipairs(call('HMGET', TALLY, unpack(fields))) do
        if (times or nil) ~= counted[fields[i]] then
            return false
        end
    end
    return true
end

local removed, at = 0, 1
while at <= #ARGV do
    local key, lane, count = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2])
    local counted = {}
    for i = at + 3, at + 2 + 2 * count, 2 do
        counted[ARGV[i]] = ARGV[i + 1]
    end
    at = at + 3 + 2 * count
    if tonumber(call('ZSCORE', LANES, key) or 0) == tonumber(lane) and is_unused(lane, counted) then
        for field in pairs(counted) do
            local sum = string.gsub(field, '^%d+', DROPPED_LANE)
            for _, hash in ipairs({TALLY, TALLY_TIME}) do
                local value = call('HGET', hash, field)
                if value then
                    call('HINCRBY', hash, sum, value)
                    call('HDEL', hash, field)
                end
            end
        end
        call('ZREM', LANES, key)
        removed = removed + 1
    end
end
if removed > 0 then
    bump()
    write()
end
return removed
