-- Release due tasks and end expired ones.

-- Return the names of the streams that have a due task.
local function due_streams()
    return call('ZRANGE', DUE_STREAMS, '-inf', now_text, 'BYSCORE')
end

-- Queue the first tasks of a stream, up to `most`, that are due; return their number.
local function release_due(stream, most)
    local ids = call('ZRANGE', DUE .. stream, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, most)
    for i, record in ipairs(live_records(ids)) do
        later('ZREM', DUE .. stream, ids[i])
        make_ready(MOVE_DUE, ids[i], record)
    end
    due_streams_changed[stream] = true
    return #ids
end

-- Return the microseconds until the next task is due that is not due now, if there is one.
local function next_due_in()
    local next = call('ZRANGE', DUE_STREAMS, '(' .. now_text, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
    return next and next - now
end

-- End expired tasks; return their number.
local function expire(most)
    local ids = call('ZRANGE', EXPIRING, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, most)
    for i, record in ipairs(live_records(ids)) do
        end_by(MOVE_EXPIRE, ids[i], record)
    end
    write()
    return #ids
end
