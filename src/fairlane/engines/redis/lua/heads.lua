#!lua flags=no-writes
-- needs: record heads
-- Read tasks without their payloads, results and runs.
-- ARGV: task ids. Returns what get.lua returns.
local records, tasks, none = all_records(ARGV), call('HMGET', TASKS, unpack(ARGV)), {}
for i = 1, #ARGV do
    none[i] = false
    if records[i] then
        records[i] = sub(records[i], 1, HEAD + #worker_of(records[i]))
        tasks[i] = without_payload(tasks[i])
    end
end
local function all(key)
    return call('HMGET', key, unpack(ARGV))
end
return {now_text, catalogue_version, records, tasks, none, all(ERRORS), all(PROGRESS), all(TRAIL)}
