#!lua flags=no-writes
-- Read journal entries.
-- ARGV: the id of the first entry, the number of transitions after which to stop (0 for none), and the
--       largest number of entries. Returns the id of the newest entry ever written, the entries, and
--       the version of the catalogue.
local from, wanted, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
if call('EXISTS', JOURNAL) == 0 then
    return {'0-0', {}, catalogue_version}
end

-- An entry holds one transition or hundreds of them. So the first read takes one entry, and each further
-- read twice as many.
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
        return {about[i + 1], entries, catalogue_version}
    end
end
