#!lua
-- KEYS: the store's prefix. ARGV: the format to be. Tokens, schedules, roles, samples and the audit log of
-- format 1 become documents, see documents.py. The shared parts of other
-- scripts are left out, because they refuse a store of this format.
local call, sub, pack = redis.call, string.sub, struct.pack
local prefix = KEYS[1]
local NEVER, NO_TIME = '\127\255\255\255\255\255\255\255', '\128\0\0\0\0\0\0\0'

local function number(bytes)
    return string.format('%.0f', struct.unpack('>I8', bytes))
end

-- `at` and `ends` are 8 bytes each.
local function store(kind, id, at, ends, alias, value)
    call('HSET', prefix .. 'documents:' .. kind, id, pack('>I8', 1) .. at .. ends .. string.char(#alias) .. alias .. value)
    call('ZADD', prefix .. 'document_times:' .. kind, number(at), id)
    if ends ~= NEVER then
        call('ZADD', prefix .. 'document_ends:' .. kind, number(ends), id)
    end
    if alias ~= '' then
        call('HSET', prefix .. 'document_aliases:' .. kind, alias, id)
    end
end

local function each(key, visit)
    local all = call('HGETALL', prefix .. key)
    for i = 1, #all, 2 do
        visit(all[i], all[i + 1])
    end
end

if call('HGET', prefix .. 'meta', 'format') ~= '1' then
    return 'moved'  -- by another process, just now
end

each('tokens', function(id, token)
    local parent_id, digest, terms = sub(token, 17, 52), sub(token, 53, 84), sub(token, 85)
    if string.find(parent_id, '%S') then
        terms = '{"parent_id":"' .. parent_id .. '",' .. sub(terms, 2)
    end
    local alias = string.gsub(digest, '.', function(byte) return string.format('%02x', string.byte(byte)) end)
    store('token', id, sub(token, 1, 8), sub(token, 9, 16), alias, terms)
end)
each('schedules', function(id, schedule)
    local function time(from)
        local bytes = sub(schedule, from, from + 7)
        return bytes == NO_TIME and 'null' or number(bytes)
    end
    local head = {time(1), time(9), time(25), struct.unpack('>I4', schedule, 33)}
    local value = '[' .. table.concat(head, ',') .. ']\n' .. sub(schedule, 37)
    store('schedule', id, sub(schedule, 17, 24), NEVER, '', value)
end)
each('roles', function(role, lease)
    store('role', role, sub(lease, 1, 8), NEVER, '', sub(lease, 9))
end)
each('audit', function(id, entry)
    store('audit', id, pack('>I8', call('ZSCORE', prefix .. 'audit_times', id)), NEVER, '', entry)
end)
local samples = call('ZRANGE', prefix .. 'samples', 0, -1, 'WITHSCORES')
for i = 1, #samples, 2 do
    local at = tonumber(samples[i + 1])
    store('sample', string.format('%.0f', at), pack('>I8', at), pack('>I8', at + 86400000000), '', samples[i])
end
for _, key in ipairs({'tokens', 'token_digests', 'token_ends', 'schedules', 'roles', 'audit', 'audit_times', 'samples'}) do
    call('DEL', prefix .. key)
end
call('HSET', prefix .. 'meta', 'format', ARGV[1])
return 'moved'
