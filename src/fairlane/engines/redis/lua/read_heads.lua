#!lua flags=no-writes
-- needs: record heads
-- Read the heads of tasks.
-- ARGV: two flags (1 or 0: return workers, return specs), then ids. Returns ids, heads, workers, specs.
local ids = {unpack(ARGV, 3)}
return {table.concat(ids), read_heads(ids, ARGV[1] == '1', ARGV[2] == '1')}
