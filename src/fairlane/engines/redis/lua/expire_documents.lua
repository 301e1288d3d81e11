#!lua flags=allow-oom
-- needs: document_writes
-- ARGV: kind, how many at the most.
local expired = expire(ARGV[1], ARGV[2])
write()
return expired
