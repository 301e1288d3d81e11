#!lua flags=no-writes
-- needs: record moves
-- Find tasks of dead workers and tasks whose time limit has passed.
-- ARGV: the largest number of tasks. Returns per task: cause, id, record, the task as submitted.
local most = tonumber(ARGV[1])
local found = {}

local function add(cause, id, record)
    found[#found + 1] = {cause, id, record, call('HGET', TASKS, id)}
end

for _, worker in ipairs(call('ZRANGE', WORKERS, 0, -1)) do
    if #found < most and is_dead(worker) then
        for _, run in ipairs(call('SRANDMEMBER', HELD .. worker, most - #found)) do
            local id = sub(run, 1, 16)
            add('lost', id, call('HGET', LIVE, id))
        end
    end
end

local overdue = call('ZRANGE', DEADLINES, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, most)
for i, record in ipairs(live_records(overdue)) do
    if #found < most and not is_dead(worker_of(record)) then
        add('timeout', overdue[i], record)
    end
end
return found
