#!lua flags=allow-oom
-- needs: documents
-- ARGV: kind, how many at the most.
local expired = expire(ARGV[1], ARGV[2])
write()
return expired
