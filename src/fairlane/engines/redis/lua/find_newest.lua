#!lua flags=no-writes
-- needs: record heads
-- Read the heads of the newest tasks.
-- ARGV: two flags (1 or 0: return workers, return specs), '+' or '(' and the id below which to continue,
--       the number of tasks. Returns ids, newest first, heads, workers, specs.
local ids = call('ZRANGE', INDEX, ARGV[3], '-', 'BYLEX', 'REV', 'LIMIT', 0, ARGV[4])
return {table.concat(ids), read_heads(ids, ARGV[1] == '1', ARGV[2] == '1')}
