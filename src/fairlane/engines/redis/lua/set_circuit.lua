#!lua flags=allow-oom
-- needs: record slots catalogue
-- Replace the circuit of a type.
-- ARGV: the version of the catalogue, type, the circuit from which this was decided, the new circuit, the
--       field of CONTROLS with the time until which the circuit is open, its value ('' if closed), '1' if
--       that value changes, then the lanes whose slots must be counted from now on.
-- Returns 'set', or 'stale' if the catalogue or the circuit has changed.
local version, type, before, after, field, open_until = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
if catalogue_version ~= version or call('HGET', CIRCUITS, type) ~= before then
    return 'stale'
end
later('HSET', CIRCUITS, type, after)
if ARGV[7] == '1' then
    count_slots(8, #ARGV)
    set_or_drop(CONTROLS, field, open_until)
    bump()
end
write()
if ARGV[7] == '1' then
    -- An opened circuit sets a new time for the next claim, so waiting workers must wake up too.
    wake()
end
return 'set'
