#!lua flags=no-writes
return call('HGETALL', SCHEDULES)
