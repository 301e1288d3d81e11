-- Give the catalogue a new version, after a change of lanes or controls. Versions never repeat, even in
-- a store that has lost its last changes in a failover.
local function bump()
    later('HSET', META, 'catalogue', whole(math.max(catalogue_version + 1, now)))
end
