#!lua flags=no-writes
-- ARGV: the fields to tell of each worker. Answers now, then those fields and the runs it holds.
local answers = {}
for i, worker in ipairs(call('ZRANGE', WORKERS, 0, -1)) do
    answers[i] = {worker, call('HMGET', WORKER_HASH .. worker, unpack(ARGV)), call('SMEMBERS', HELD .. worker)}
end
return {now_text, answers}
