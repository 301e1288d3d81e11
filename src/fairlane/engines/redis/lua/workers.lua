#!lua flags=no-writes
-- ARGV: fields of workers. Returns now, then per worker its id, the values of these fields, and the runs
--       that it holds.
local answers = {}
for i, worker in ipairs(call('ZRANGE', WORKERS, 0, -1)) do
    answers[i] = {worker, call('HMGET', WORKER_HASH .. worker, unpack(ARGV)), call('SMEMBERS', HELD .. worker)}
end
return {now_text, answers}
