#!lua flags=no-writes
-- ARGV: how many entries, the id of the one they come after ('' to begin with the newest). Answers their
--       ids and times, one after another, and the entries.
local first = 0
if ARGV[2] ~= '' then
    local rank = call('ZREVRANK', AUDIT_TIMES, ARGV[2])
    if not rank then
        return {{}, {}}
    end
    first = rank + 1
end
local found = call('ZRANGE', AUDIT_TIMES, first, first + ARGV[1] - 1, 'REV', 'WITHSCORES')
local ids = {}
for i = 1, #found, 2 do
    ids[#ids + 1] = found[i]
end
return {found, #ids > 0 and call('HMGET', AUDIT, unpack(ids)) or {}}
