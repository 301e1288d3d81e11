-- Controls are set, and slots counted where one of them asks for it.

local function set_or_drop(key, field, value)
    if value == '' then
        later('HDEL', key, field)
    else
        later('HSET', key, field, value)
    end
end

-- Count what is in workers' hands of the lanes that stand in ARGV, which nobody did so far.
local function count_slots(first, last)
    if last < first then
        return
    end
    local counted = {}
    for i = first, last do
        counted[tonumber(ARGV[i])] = true
        later('DEL', SLOTS .. ARGV[i])
    end
    local function add(run, place)
        if counted[read('>H', place)] then
            later('SADD', slots_of(place), run)
        end
    end
    for _, worker in ipairs(call('ZRANGE', WORKERS, 0, -1)) do
        for _, run in ipairs(call('SMEMBERS', HELD .. worker)) do
            add(run, place_of(call('HGET', LIVE, sub(run, 1, 16))))
        end
        local lingering = call('HGETALL', LINGERING .. worker)
        for i = 1, #lingering, 2 do
            add(lingering[i], lingering[i + 1])
        end
    end
end
