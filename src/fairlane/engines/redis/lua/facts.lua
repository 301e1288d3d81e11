#!lua flags=no-writes
-- needs: documents
-- ARGV: the number of ages, the ages of samples in microseconds, then the fields of workers to return.
local first_field = 2 + ARGV[1]

local streams = {}
for i, name in ipairs(call('SMEMBERS', STREAMS)) do
    local key = QUEUE .. name
    local oldest, newest = call('ZRANGE', key, 0, 0, 'WITHSCORES')[2], call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
    streams[i] = {name, call('ZCARD', key), oldest, newest}
end

local workers, lingering = {}, {}
for i, worker in ipairs(call('ZRANGE', WORKERS, 0, -1)) do
    workers[i] = {worker, call('HMGET', WORKER_HASH .. worker, unpack(ARGV, first_field)), call('SMEMBERS', HELD .. worker)}
    for _, place in ipairs(call('HVALS', LINGERING .. worker)) do
        lingering[#lingering + 1] = place
    end
end

-- The last sample before a time and the first after it: one of them is the nearest.
local samples = {}
for i = 2, first_field - 1 do
    local time = whole(now - ARGV[i])
    local before = call('ZRANGE', DOCUMENT_TIMES .. SAMPLE, time, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1)
    local after = call('ZRANGE', DOCUMENT_TIMES .. SAMPLE, '(' .. time, '+inf', 'BYSCORE', 'LIMIT', 0, 1)
    samples[#samples + 1] = before[1]
    samples[#samples + 1] = after[1]
end
for i, id in ipairs(samples) do
    samples[i] = value_of(call('HGET', DOCUMENTS .. SAMPLE, id))
end

return {
    now_text,
    {
        catalogue_version, call('HGETALL', CONTROLS), call('ZRANGE', LANES, 0, -1, 'WITHSCORES'),
        stored_settings(),
    },
    {call('HGETALL', TALLY), call('HGETALL', TALLY_TIME)},
    streams,
    call('HGETALL', BUCKETS),
    lingering,
    workers,
    samples,
}
