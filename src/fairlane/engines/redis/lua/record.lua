#!lua flags=allow-oom
-- ARGV: pairs of the id of an entry and the entry. One that is there already stays as it is.
for i = 1, #ARGV, 2 do
    if call('HSETNX', AUDIT, ARGV[i], ARGV[i + 1]) == 1 then
        call('ZADD', AUDIT_TIMES, now_text, ARGV[i])
    end
end
local excess = call('ZCARD', AUDIT_TIMES) - AUDIT_ENTRIES
if excess > 0 then
    local oldest = call('ZRANGE', AUDIT_TIMES, 0, excess - 1)
    call('HDEL', AUDIT, unpack(oldest))
    call('ZREM', AUDIT_TIMES, unpack(oldest))
end
return #ARGV / 2
