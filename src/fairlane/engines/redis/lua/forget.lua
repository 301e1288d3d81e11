#!lua flags=allow-oom
-- needs: record accounting moves
-- Remove a worker that leaves. If it still holds tasks, declare it dead, so that they are reaped.
-- ARGV: worker id.
local worker = ARGV[1]
local seen_at = call('HGET', WORKER_HASH .. worker, 'seen_at')
if not seen_at then
    return 0
end
free_lingering_slots(worker)
if call('EXISTS', HELD .. worker) == 1 then
    later('HSET', WORKER_HASH .. worker, 'status', 'dead')  -- its tasks are lost
    later('ZADD', DEAD_WORKERS, seen_at, worker)
else
    later('DEL', WORKER_HASH .. worker)
    later('ZREM', WORKERS, worker)
    later('ZREM', DEAD_WORKERS, worker)
end
add_worker_event('worker_left', worker)
write()
post()
return 1
