#!lua flags=allow-oom
-- Add to a counter that counts no transition.
-- ARGV: the counter, the number to add.
return call('HINCRBY', TALLY, ARGV[1], ARGV[2])
