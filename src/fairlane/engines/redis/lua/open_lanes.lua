#!lua
-- needs: catalogue
-- ARGV: the largest number of lanes, then the lanes to open (JSON).
local most, open = tonumber(ARGV[1]), call('ZCARD', LANES)
local last = open
for i = 2, #ARGV do
    if not call('ZSCORE', LANES, ARGV[i]) then
        last = last + 1
        later('ZADD', LANES, last, ARGV[i])
    end
end
if last > most then
    return 'full'
end
if last > open then
    bump()
    write()
end
return 'open'
