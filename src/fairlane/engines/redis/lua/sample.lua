#!lua flags=allow-oom
-- ARGV: the time of a sample, the time by which the one before it must have been taken, the sample.
local newest = call('ZRANGE', SAMPLES, -1, -1, 'WITHSCORES')[2]
if newest and tonumber(newest) > tonumber(ARGV[2]) then
    return 0
end
return call('ZADD', SAMPLES, ARGV[1], ARGV[3])
