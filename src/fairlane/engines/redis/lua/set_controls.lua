#!lua flags=allow-oom
-- needs: record
-- ARGV: version of the catalogue, '1' when more may be claimed now, number of lanes whose slots are
--       to be counted from now on, these lanes, then pairs of a field of CONTROLS and its value.
if catalogue_version ~= ARGV[1] then
    return 'stale'
end
local lane_count = tonumber(ARGV[3])
local counted = {}
for i = 4, 3 + lane_count do
    counted[tonumber(ARGV[i])] = true
    call('DEL', SLOTS .. ARGV[i])
end

-- What is in workers' hands takes up slots. `from`: where the records of these runs are.
local function count_slots(runs, from)
    for _, run in ipairs(runs) do
        local record = call('HGET', from, sub(run, 1, 16))
        if record and counted[read('>H', record, LANE)] then
            later('SADD', slots_of(place_of(record)), run)
        end
    end
end
if lane_count > 0 then
    for _, worker in ipairs(call('ZRANGE', WORKERS, 0, -1)) do
        count_slots(call('SMEMBERS', HELD .. worker), LIVE)
        count_slots(call('SMEMBERS', LINGERING .. worker), TASKS)
    end
end

for i = 4 + lane_count, #ARGV, 2 do
    later('HSET', CONTROLS, ARGV[i], ARGV[i + 1])
end
call('HINCRBY', META, 'catalogue', 1)
write()
if ARGV[2] == '1' then
    wake()
end
return 'set'
