#!lua flags=allow-oom
-- needs: tokens
-- ARGV: id. Answers how many were taken away: it, and its sessions.
local family = family_of(ARGV[1])
for _, member in ipairs(family) do
    forget_token(unpack(member))
end
write()
return #family
