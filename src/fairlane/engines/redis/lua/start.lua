#!lua flags=allow-oom
-- needs: record accounting
-- Note that claimed tasks have started.
-- ARGV: worker id, then per task: id, attempt in bytes, microseconds since its start. Returns a verdict per
--       task.
local worker = ARGV[1]
local ids = {}
for i = 2, #ARGV, 3 do
    ids[#ids + 1] = ARGV[i]
end

local verdicts = {}
for i, record in ipairs(all_records(ids)) do
    local id, attempt, ago = ids[i], ARGV[3 * i], tonumber(ARGV[3 * i + 1])
    if holds(record, attempt .. holder(worker)) then
        later('HSET', LIVE, id, started(id, record, now - ago))
        add_task(passage_for('start', place_of(record), worker), id .. attempt)
        verdicts[i] = 'applied'
    else
        verdicts[i] = record and 'stale' or 'missing'
    end
end
write()
post()
return verdicts
