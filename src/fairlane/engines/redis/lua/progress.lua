#!lua flags=allow-oom
-- needs: record accounting
-- Store the progress of executing tasks.
-- ARGV: worker id, then per task: id, attempt in bytes, percent and message (JSON). Returns a verdict per
--       task.
local worker = ARGV[1]
local ids = {}
for i = 2, #ARGV, 3 do
    ids[#ids + 1] = ARGV[i]
end

local verdicts = {}
for i, record in ipairs(all_records(ids)) do
    local id, attempt, report = ids[i], ARGV[3 * i], ARGV[3 * i + 1]
    if holds(record, attempt .. holder(worker)) then
        if bytes_of(record, STARTED_AT) == NONE then
            record = started(id, record, now)
        end
        later('HSET', LIVE, id, sub(record, 1, UPDATED_AT - 1) .. stamp .. sub(record, DUE_AT))
        later('HSET', PROGRESS, id, stamp .. report)
        add_task(passage_for('progress', place_of(record), worker), id .. attempt)
        verdicts[i] = 'applied'
    else
        verdicts[i] = record and 'stale' or 'missing'
    end
end
write()
post()
return verdicts
