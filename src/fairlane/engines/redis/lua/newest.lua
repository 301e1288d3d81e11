#!lua flags=no-writes
-- needs: record heads
-- ARGV: whether (1 or 0) to tell workers and specs, '+' or '(' and the id to go on below, how many.
--       Answers ids, newest first, heads, workers, specs.
local ids = call('ZRANGE', INDEX, ARGV[3], '-', 'BYLEX', 'REV', 'LIMIT', 0, ARGV[4])
return {table.concat(ids), glance_at(ids, ARGV[1] == '1', ARGV[2] == '1')}
