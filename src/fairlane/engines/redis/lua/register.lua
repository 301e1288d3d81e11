#!lua flags=allow-oom
-- needs: record accounting
-- Register a worker, or update one that is alive.
-- ARGV: worker id, the load of a new worker, then pairs of a field and its value.
local worker = ARGV[1]
local status = call('HGET', WORKER_HASH .. worker, 'status')
if status == 'dead' then
    return 'gone'
end
call('HSET', WORKER_HASH .. worker, 'seen_at', now_text, unpack(ARGV, 3))
if not status then
    call('HSET', WORKER_HASH .. worker, 'status', 'active', 'load', ARGV[2], 'registered_at', now_text)
    call('ZADD', WORKERS, now_text, worker)
    add_worker_event('worker_joined', worker)
    post()
end
return 'registered'
