#!lua flags=no-writes
-- needs: record
-- ARGV: task ids. Returns now, the version of the catalogue, then lists in their order: records, tasks
--       as submitted, runs, errors, progress, trails.
local function all(key)
    return call('HMGET', key, unpack(ARGV))
end
return {now_text, catalogue_version, all_records(ARGV), all(TASKS), all(RUNS), all(ERRORS), all(PROGRESS),
    all(TRAIL)}
