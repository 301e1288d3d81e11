#!lua flags=allow-oom
-- ARGV: where something is counted that is no transition, how many times.
return call('HINCRBY', TALLY, ARGV[1], ARGV[2])
