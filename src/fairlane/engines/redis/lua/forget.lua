#!lua flags=allow-oom
-- needs: record accounting moves
-- ARGV: a worker that leaves.
local worker = ARGV[1]
local seen_at = call('HGET', WORKER_HASH .. worker, 'seen_at')
if not seen_at then
    return 0
end
free_lingering(worker)
if call('EXISTS', HELD .. worker) == 1 then
    later('HSET', WORKER_HASH .. worker, 'status', 'dead')  -- what it holds is lost
    later('ZADD', DEAD_WORKERS, seen_at, worker)
else
    later('DEL', WORKER_HASH .. worker)
    later('ZREM', WORKERS, worker)
    later('ZREM', DEAD_WORKERS, worker)
end
note_worker('worker_left', worker)
write()
post()
return 1
