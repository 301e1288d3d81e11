#!lua flags=allow-oom
-- needs: record slots catalogue
-- ARGV: version of the catalogue, type, how it fared when this was decided, how it fares now, the field
--       of CONTROLS that says until when it is open and its value ('' when it is closed), '1' if that
--       changes, then lanes whose slots are to be counted from now on.
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
    -- One that opened has a new time at which to try: those who wait have to hear of it too.
    wake()
end
return 'set'
