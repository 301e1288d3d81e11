#!lua
-- KEYS: the store's prefix. ARGV: the format to be. The one set of due tasks of format 2 becomes a set for
-- each lane and level. The shared parts of other scripts are left out, because they refuse a store of this
-- format.
local call = redis.call
local prefix = KEYS[1]
local LANE, AT_ONCE = 82, 1000

if call('HGET', prefix .. 'meta', 'format') ~= '2' then
    return 'moved'  -- by another process, just now
end

while true do
    local due = call('ZRANGE', prefix .. 'due', 0, AT_ONCE - 1, 'WITHSCORES')
    if #due == 0 then
        break
    end
    local ids, sets = {}, {}
    for i = 1, #due, 2 do
        ids[#ids + 1] = due[i]
    end
    local live = call('HMGET', prefix .. 'live', unpack(ids))
    for i, task in ipairs(call('HMGET', prefix .. 'tasks', unpack(ids))) do
        local stream = string.format('%d:%d', struct.unpack('>HB', live[i] or task, LANE))
        local set = sets[stream] or {'ZADD', prefix .. 'due:' .. stream}
        set[#set + 1], set[#set + 2] = due[2 * i], ids[i]
        sets[stream] = set
    end
    for stream, set in pairs(sets) do
        call(unpack(set))
        call('ZADD', prefix .. 'due_streams', 'LT', set[3], stream)
    end
    call('ZREM', prefix .. 'due', unpack(ids))
end
call('HSET', prefix .. 'meta', 'format', ARGV[1])
return 'moved'
