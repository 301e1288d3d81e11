#!lua flags=no-writes
-- ARGV: where to go on ('-' from the oldest), how many entries.
return call('XRANGE', JOURNAL, ARGV[1], '+', 'COUNT', ARGV[2])
