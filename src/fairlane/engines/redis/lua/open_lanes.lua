#!lua
-- needs: catalogue
-- ARGV: the largest number of lanes, then the lanes to open (JSON).
-- A record has two bytes for the number of its lane. So numbers go round, and that of a dropped lane is used
-- again only after all others: journal entries that name it are gone by then.
local most, open = tonumber(ARGV[1]), call('ZCARD', LANES)
local last = call('HGET', META, 'last_lane') or call('ZRANGE', LANES, -1, -1, 'WITHSCORES')[2] or 0
local opened = 0
for i = 2, #ARGV do
    if not call('ZSCORE', LANES, ARGV[i]) then
        repeat
            last = last % LAST_LANE + 1
        until call('ZCOUNT', LANES, last, last) == 0
        opened = opened + 1
        later('ZADD', LANES, last, ARGV[i])
    end
end
if open + opened > most then
    return 'full'
end
if opened > 0 then
    later('HSET', META, 'last_lane', last)
    bump()
    write()
end
return 'open'
