-- Lanes or controls have changed. The version is never twice the same, not even in a store that has
-- lost its last changes in a failover.
local function bump()
    later('HSET', META, 'catalogue', whole(math.max(catalogue_version + 1, now)))
end
