#!lua flags=no-writes
-- needs: record heads
-- ARGV: whether (1 or 0) to tell workers and specs, then ids. Answers ids, heads, workers, specs.
local ids = {unpack(ARGV, 3)}
return {table.concat(ids), glance_at(ids, ARGV[1] == '1', ARGV[2] == '1')}
