#!lua flags=no-writes
-- Answers now, the time of the newest sample ('' for none), counters, and how long things took.
local newest = call('ZRANGE', SAMPLES, -1, -1, 'WITHSCORES')[2]
return {now_text, newest or '', call('HGETALL', TALLY), call('HGETALL', TALLY_TIME)}
