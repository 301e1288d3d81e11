#!lua
-- KEYS: META. ARGV: the format. Nothing is put in front of this one: there is no store yet.
--
-- The catalogue's version begins with the time, so that a store made anew under the same prefix is
-- not taken for the one that others still remember.
if redis.call('HSETNX', KEYS[1], 'format', ARGV[1]) == 1 then
    local seconds, microseconds = unpack(redis.call('TIME'))
    redis.call('HSET', KEYS[1], 'catalogue', string.format('%.0f', seconds * 1000000 + microseconds))
end
return 'made'
