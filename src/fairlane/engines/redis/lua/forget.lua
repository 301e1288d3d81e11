#!lua flags=allow-oom
-- needs: record books moves
-- ARGV: a worker that leaves.
local worker = ARGV[1]
if call('EXISTS', WORKER .. worker) == 0 then
    return 0
end
free_lingering(worker)
if call('EXISTS', HELD .. worker) == 1 then
    later('HSET', WORKER .. worker, 'status', 'dead')  -- what it holds is lost
else
    later('DEL', WORKER .. worker)
    later('ZREM', WORKERS, worker)
end
note_worker('worker_left', worker)
write()
post()
return 1
