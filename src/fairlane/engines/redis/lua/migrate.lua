#!lua
-- Create the store.
-- KEYS: META. ARGV: the format. This script does not start with common.lua, because there is no store yet.
--
-- The catalogue's version starts with the current time, so that clients do not mistake a new store under
-- the same prefix for the old one that they have cached.
if redis.call('HSETNX', KEYS[1], 'format', ARGV[1]) == 1 then
    local seconds, microseconds = unpack(redis.call('TIME'))
    redis.call('HSET', KEYS[1], 'catalogue', string.format('%.0f', seconds * 1000000 + microseconds))
end
return 'made'
