-- Set controls, and start to count slots where a control needs that.

-- Set a field of a hash; remove it if the value is ''.
local function set_or_drop(key, field, value)
    if value == '' then
        later('HDEL', key, field)
    else
        later('HSET', key, field, value)
    end
end

-- Fill the sets of slots of the lanes ARGV[first] to ARGV[last] with the runs that workers hold now.
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
