#!lua flags=allow-oom
-- needs: record accounting
-- Register a worker, or update one that is alive.
-- ARGV: worker id, then pairs of a field and its value.
local worker = ARGV[1]
local status = call('HGET', WORKER_HASH .. worker, 'status')
if status == 'dead' then
    return 'gone'
end
call('HSET', WORKER_HASH .. worker, 'seen_at', now_text, unpack(ARGV, 2))
if not status then
    call('HSET', WORKER_HASH .. worker, 'status', 'active', 'load', 0, 'registered_at', now_text)
    call('ZADD', WORKERS, now_text, worker)
    add_worker_event('worker_joined', worker)
    post()
end
return 'registered'
