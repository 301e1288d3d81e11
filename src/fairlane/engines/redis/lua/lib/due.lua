-- The first part of every claim: release due tasks and end expired ones.

-- Return the first members of a sorted set of times that have passed.
local function ids_until_now(key, most)
    return call('ZRANGE', key, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, most)
end

-- Queue due tasks; return their number.
local function release_due(most)
    local ids = ids_until_now(DUE, most)
    for i, record in ipairs(live_records(ids)) do
        later('ZREM', DUE, ids[i])
        make_ready(MOVE_DUE, ids[i], record)
    end
    write()
    return #ids
end

-- End expired tasks; return their number.
local function expire(most)
    local ids = ids_until_now(EXPIRING, most)
    for i, record in ipairs(live_records(ids)) do
        end_by(MOVE_EXPIRE, ids[i], record)
    end
    write()
    return #ids
end
