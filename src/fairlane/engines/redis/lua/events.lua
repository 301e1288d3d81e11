#!lua flags=no-writes
-- ARGV: from which entry on, how many transitions they are to tell of at least (0 for none), and how many
--       entries at the most. Answers the newest entry there ever was, and those entries.
local from, wanted, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if call('EXISTS', JOURNAL) == 0 then
    return {'0-0', {}}
end

-- An entry tells of one transition or of hundreds: so one is read at first, and twice as many each time.
local entries, size = {}, 1
while wanted > 0 and #entries < most do
    local some = call('XRANGE', JOURNAL, from, '+', 'COUNT', math.min(size, most - #entries))
    for _, entry in ipairs(some) do
        if wanted > 0 then
            entries[#entries + 1] = entry
            for i = 4, #entry[2], 2 do
                wanted = wanted - math.max(1, #entry[2][i] / LINE)
            end
        end
    end
    if #some == 0 then
        break
    end
    from, size = '(' .. some[#some][1], math.min(2 * size, 50)
end

local about = call('XINFO', 'STREAM', JOURNAL)
for i = 1, #about, 2 do
    if about[i] == 'last-generated-id' then
        return {about[i + 1], entries}
    end
end
