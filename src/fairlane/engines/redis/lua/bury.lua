#!lua flags=allow-oom
-- needs: record books moves
-- ARGV: workers to declare dead, if their lease has run out.
local buried = {}
for _, worker in ipairs(ARGV) do
    local status, seen_at, lease = unpack(call('HMGET', WORKER .. worker, 'status', 'seen_at', 'lease'))
    if status and status ~= 'dead' and seen_at + lease <= now then
        later('HSET', WORKER .. worker, 'status', 'dead')
        free_lingering(worker)
        note_worker('worker_dead', worker)
        buried[#buried + 1] = worker
    end
end
write()
post()
return buried
