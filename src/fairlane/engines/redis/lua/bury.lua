#!lua flags=allow-oom
-- needs: record accounting moves
-- Declare workers dead whose lease has expired.
-- ARGV: the counter of lost workers, then worker ids. Returns the workers that are dead now.
local buried = {}
for i = 2, #ARGV do
    local worker = ARGV[i]
    local status, seen_at, lease = unpack(call('HMGET', WORKER_HASH .. worker, 'status', 'seen_at', 'lease'))
    if status and status ~= 'dead' and seen_at + lease <= now then
        later('HSET', WORKER_HASH .. worker, 'status', 'dead')
        later('ZADD', DEAD_WORKERS, seen_at, worker)
        free_lingering_slots(worker)
        add_worker_event('worker_dead', worker)
        buried[#buried + 1] = worker
    end
end
if #buried > 0 then
    later('HINCRBY', TALLY, ARGV[1], #buried)
end
write()
post()
return buried
