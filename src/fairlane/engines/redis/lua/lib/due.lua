-- What a claim sees to first: tasks whose time has come, and tasks whose time is over.

local function first_until_now(key, most)
    return call('ZRANGE', key, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, most)
end

-- Make due tasks ready; answers how many.
local function release_due(most)
    local ids = first_until_now(DUE, most)
    for i, record in ipairs(live_records(ids)) do
        local id, source = ids[i], byte(record)
        local ready = moved(record, QUEUED, NONE, NONE, NONE, sub(record, READY_AT))
        later('ZREM', DUE, id)
        later('HSET', LIVE, id, ready)
        enqueue(id, ready)
        note(passage('due', place_of(record), '', source .. ':' .. QUEUED .. '::-1'), run_of(id, record))
    end
    write()
    return #ids
end

-- End expired tasks; answers how many.
local function expire(most, problem, label)
    local ids = first_until_now(EXPIRING, most)
    for i, record in ipairs(live_records(ids)) do
        local id, source = ids[i], byte(record)
        withdraw(id, record)
        finish(id, moved(record, FAILED, NONE, NONE, NONE, sub(record, READY_AT)), FAILED)
        later('HSET', ERRORS, id, problem)
        note(passage('expire', place_of(record), '', source .. ':' .. FAILED .. ':' .. label .. ':-1'), run_of(id, record))
    end
    write()
    return #ids
end
