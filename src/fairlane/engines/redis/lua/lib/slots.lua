-- Set controls, and start to count slots where a control needs that.

-- Set a field of a hash; remove it if the value is ''.
local function set_or_drop(key, field, value)
    if value == '' then
        later('HDEL', key, field)
    else
        later('HSET', key, field, value)
    end
end

-- Fill the sets of slots of these lanes with the runs that workers hold now. `gone` are runs that this
-- script ends: they take no slot any more.
local function count_slots(lanes, gone)
    if #lanes == 0 then
        return
    end
    local counted = {}
    for _, lane in ipairs(lanes) do
        counted[tonumber(lane)] = true
        later('DEL', SLOTS .. lane)
    end
    local function add(run, place)
        if counted[read('>H', place)] and not gone[run] then
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
