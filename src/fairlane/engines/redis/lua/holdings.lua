#!lua flags=no-writes
-- ARGV: worker id, where to go on ('0' to begin), about how many runs to return.
-- Returns where to go on ('0' at the end), and runs that the worker holds.
return call('SSCAN', HELD .. ARGV[1], ARGV[2], 'COUNT', ARGV[3])
