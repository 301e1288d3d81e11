-- What a claim sees to first: tasks whose time has come, and tasks whose time is over.

local function first_until_now(key, most)
    return call('ZRANGE', key, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, most)
end

-- Make due tasks ready; answers how many.
local function release_due(most)
    local ids = first_until_now(DUE, most)
    for i, record in ipairs(live_records(ids)) do
        local id = ids[i]
        local ready = moved(record, MOVE_DUE.state, NONE, NONE, NONE, sub(record, READY_AT))
        later('ZREM', DUE, id)
        later('HSET', LIVE, id, ready)
        enqueue(id, ready)
        note(passage(MOVE_DUE.verb, place_of(record), '', change_of(MOVE_DUE, record)), run_of(id, record))
    end
    write()
    return #ids
end

-- End expired tasks; answers how many.
local function expire(most)
    local ids = first_until_now(EXPIRING, most)
    for i, record in ipairs(live_records(ids)) do
        end_by(MOVE_EXPIRE, ids[i], record)
    end
    write()
    return #ids
end
