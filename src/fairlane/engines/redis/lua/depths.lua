#!lua flags=no-writes
-- Streams as lane:level, each with the number of tasks queued in it.
local depths = {}
for i, stream in ipairs(call('SMEMBERS', STREAMS)) do
    depths[i] = {stream, call('ZCARD', QUEUE .. stream)}
end
return depths
