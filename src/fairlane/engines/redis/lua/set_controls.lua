#!lua flags=allow-oom
-- needs: record slots catalogue
-- Set controls.
-- ARGV: the version of the catalogue, '1' if more tasks can be claimed now, a type whose circuit is reset
--       ('' for none), its new circuit ('' to remove it with its breaker), the number of lanes whose
--       slots must be counted from now on, these lanes, then pairs of a field of CONTROLS and its value
--       ('' to remove it).
-- Returns 'set', or 'stale' for another version of the catalogue.
local version, wakes, type, circuit, lane_count = ARGV[1], ARGV[2] == '1', ARGV[3], ARGV[4], tonumber(ARGV[5])
if catalogue_version ~= version then
    return 'stale'
end
local lanes = {}
for i = 1, lane_count do
    lanes[i] = ARGV[5 + i]
end
count_slots(lanes, {})
for i = 6 + lane_count, #ARGV, 2 do
    set_or_drop(CONTROLS, ARGV[i], ARGV[i + 1])
end
if type ~= '' then
    set_or_drop(CIRCUITS, type, circuit)
end
bump()
write()
if wakes then
    wake()
end
return 'set'
