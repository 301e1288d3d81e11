#!lua flags=no-writes
-- needs: record moves
-- Find tasks of dead workers, tasks whose time limit has passed, and tasks that were not started in time.
-- ARGV: the largest number of tasks, the time from which both times count at the earliest.
-- Returns per task: cause, id, record, the task as submitted.
local most, since = tonumber(ARGV[1]), tonumber(ARGV[2])
local MOST_READ = 20 * BATCH
local found = {}

local function add(cause, id, record)
    found[#found + 1] = {cause, id, record, call('HGET', TASKS, id)}
end

local workers = call('ZRANGE', WORKERS, 0, -1)
for _, worker in ipairs(workers) do
    if #found < most and is_dead(worker) then
        for _, run in ipairs(call('SRANDMEMBER', HELD .. worker, most - #found)) do
            local id = sub(run, 1, 16)
            add('lost', id, call('HGET', LIVE, id))
        end
    end
end

for from = 0, MOST_READ - BATCH, BATCH do
    local overdue = call('ZRANGE', DEADLINES, '-inf', now_text, 'BYSCORE', 'LIMIT', from, BATCH)
    for i, record in ipairs(live_records(overdue)) do
        local over = since + read('>d', record, TIMEOUT) * 1000000 <= now
        if #found < most and over and not is_dead(worker_of(record)) then
            add('timeout', overdue[i], record)
        end
    end
    if #found >= most or #overdue < BATCH then
        break
    end
end

for _, worker in ipairs(workers) do
    local within = start_within(worker)
    if #found < most and within and not is_dead(worker) then
        for _, run in ipairs(call('SMEMBERS', HELD .. worker)) do
            local id = sub(run, 1, 16)
            local record = call('HGET', LIVE, id)
            if #found < most and since + within <= now and is_left_unstarted(record, within) then
                add('unstarted', id, record)
            end
        end
    end
end
return found
