#!lua flags=allow-oom
-- needs: record accounting
-- Set the status of a worker that is not dead.
-- ARGV: worker id, status.
local worker, status = ARGV[1], ARGV[2]
local current = call('HGET', WORKER_HASH .. worker, 'status')
if not current or current == 'dead' then
    return 0
end
call('HSET', WORKER_HASH .. worker, 'status', status)
add_worker_event('worker_' .. status, worker)
post()
return 1
