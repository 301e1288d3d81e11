#!lua flags=allow-oom
-- needs: record accounting
-- Renew a worker's lease.
-- ARGV: worker id, load and health (JSON; '' to keep either), the largest number of lingering runs to return,
--       then pairs of a status and the status that follows it after this heartbeat.
local worker = ARGV[1]
local status, lease = unpack(call('HMGET', WORKER_HASH .. worker, 'status', 'lease'))
if not status or status == 'dead' then
    return {'gone'}
end
for i = 5, #ARGV, 2 do
    if ARGV[i] == status then
        if ARGV[i + 1] ~= status then
            add_worker_event('worker_' .. ARGV[i + 1], worker)
        end
        status = ARGV[i + 1]
        break
    end
end
call('HSET', WORKER_HASH .. worker, 'seen_at', now_text, 'status', status)
if ARGV[2] ~= '' then
    call('HSET', WORKER_HASH .. worker, 'load', ARGV[2])
end
if ARGV[3] ~= '' then
    call('HSET', WORKER_HASH .. worker, 'health', ARGV[3])
end
post()
return {'alive', lease, status, call('HRANDFIELD', LINGERING .. worker, ARGV[4])}
