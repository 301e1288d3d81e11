#!lua flags=no-writes
-- ARGV: kind, 'oldest' or 'newest', how many, the time and the id that they come after, how many to leave
--       out. Returns the time, then ids and documents in turn.
local kind, newest, at, id = ARGV[1], ARGV[2] == 'newest', ARGV[4], ARGV[5]
local times = DOCUMENT_TIMES .. kind
local first = ARGV[6] + (newest and call('ZCOUNT', times, '(' .. at, '+inf') or call('ZCOUNT', times, '-inf', '(' .. at))
for _, other in ipairs(call('ZRANGE', times, at, at, 'BYSCORE')) do
    if newest and other >= id or not newest and other <= id then
        first = first + 1
    end
end
local found = {}
for i, each in ipairs(call(newest and 'ZREVRANGE' or 'ZRANGE', times, first, first + ARGV[3] - 1)) do
    found[2 * i - 1], found[2 * i] = each, call('HGET', DOCUMENTS .. kind, each)
end
return {now_text, found}
