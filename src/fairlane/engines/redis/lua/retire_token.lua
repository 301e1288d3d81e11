#!lua flags=allow-oom
-- needs: tokens
-- ARGV: id, for how many microseconds it and its sessions count at the most. Answers how many they are.
local family, latest = family_of(ARGV[1]), now + ARGV[2]
for _, member in ipairs(family) do
    local id, token = unpack(member)
    if expires_of(token) > latest then
        later('HSET', TOKENS, id, sub(token, 1, 8) .. pack('>I8', latest) .. sub(token, 17))
        later('ZADD', TOKEN_ENDS, whole(latest), id)
    end
end
write()
return #family
