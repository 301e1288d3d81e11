#!lua
-- KEYS: the store's prefix. ARGV: the format to be. Lanes can be dropped from format 4 on. An older version
-- would give a new lane the number of another one, because it counts the lanes.
if redis.call('HGET', KEYS[1] .. 'meta', 'format') == '3' then
    redis.call('HSET', KEYS[1] .. 'meta', 'format', ARGV[1])
end
return 'moved'
