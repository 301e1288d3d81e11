#!lua flags=allow-oom
-- ARGV: id; the tick and the next one, in bytes.
local id, tick, next_at = ARGV[1], ARGV[2], ARGV[3]
local stored = call('HGET', SCHEDULES, id)
if not stored or sub(stored, 1, 8) ~= tick then
    return 0
end
call('HSET', SCHEDULES, id, next_at .. tick .. sub(stored, 17))
return 1
