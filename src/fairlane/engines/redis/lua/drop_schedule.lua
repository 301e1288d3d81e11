#!lua flags=allow-oom
-- ARGV: id.
return call('HDEL', SCHEDULES, ARGV[1])
