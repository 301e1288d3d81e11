#!lua flags=no-writes
-- ARGV: from which time on, how many.
return call('ZRANGE', SAMPLES, ARGV[1], '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[2])
