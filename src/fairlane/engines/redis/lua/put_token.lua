#!lua
-- needs: tokens
-- ARGV: how many others there may be, id, for how many microseconds ('' for ever), id of the parent
--       (blank for none), digest, terms. Answers the time and the token as it is stored.
local id, lifespan, parent_id, digest = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
for _, old in ipairs(call('ZRANGE', TOKEN_ENDS, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, BATCH)) do
    if old ~= id then
        forget_token(old, call('HGET', TOKENS, old))
    end
end
write()
local stored = call('HGET', TOKENS, id)
if stored then
    return {now_text, stored}
elseif call('HEXISTS', TOKEN_DIGESTS, digest) == 1 then
    return 'taken'
elseif call('HLEN', TOKENS) >= tonumber(ARGV[1]) then
    return 'full'
end

local ends = lifespan == '' and NEVER or pack('>I8', now + lifespan)
if string.find(parent_id, '%S') then
    local parent = call('HGET', TOKENS, parent_id)
    if not parent or expires_of(parent) <= now then
        return 'orphan'
    elseif expires_of(parent) < read('>I8', ends) then
        ends = sub(parent, 9, 16)
    end
end
stored = stamp .. ends .. parent_id .. digest .. ARGV[6]
call('HSET', TOKENS, id, stored)
call('HSET', TOKEN_DIGESTS, digest, id)
if ends ~= NEVER then
    call('ZADD', TOKEN_ENDS, whole(read('>I8', ends)), id)
end
return {now_text, stored}
