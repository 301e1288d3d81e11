#!lua flags=no-writes
-- needs: record
-- ARGV: task ids. Returns now, then lists in their order: records, tasks as submitted, runs, errors,
--       progress.
local function all(key)
    return call('HMGET', key, unpack(ARGV))
end
return {now_text, all_records(ARGV), all(TASKS), all(RUNS), all(ERRORS), all(PROGRESS)}
