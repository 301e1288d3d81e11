#!lua flags=no-writes
return {call('HGETALL', TALLY), call('HGETALL', TALLY_TIME)}
