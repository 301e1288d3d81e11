#!lua flags=no-writes
-- needs: record
-- ARGV: ids. Answers now, then lists in their order.
local function all(key)
    return call('HMGET', key, unpack(ARGV))
end
return {now_text, all_records(ARGV), all(TASKS), all(RUNS), all(ERRORS), all(PROGRESS)}
