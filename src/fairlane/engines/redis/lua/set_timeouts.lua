#!lua flags=allow-oom
-- needs: record
-- Set the timeouts of tasks that a worker has just claimed.
-- ARGV: worker id, then per task: id, attempt in bytes, timeout in bytes.
local worker = ARGV[1]
for i = 2, #ARGV, 3 do
    local id, attempt, timeout = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    local record = call('HGET', LIVE, id)
    if holds(record, attempt .. holder(worker)) then
        later('HSET', LIVE, id, sub(record, 1, TIMEOUT - 1) .. timeout .. sub(record, EXPIRES_AT))
    end
end
write()
return 'set'
