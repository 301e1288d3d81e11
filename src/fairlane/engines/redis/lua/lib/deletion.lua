-- Delete tasks and everything stored about them, except their idempotency keys.
local removed_ids = {}

-- Mark a task that ended in this state for deletion by `write_removed`.
local function remove(id, state)
    removed_ids[#removed_ids + 1] = id
    if state ~= COMPLETED then
        later('ZREM', ENDED_BADLY .. state, id)
    end
end

-- Let a deleted task leave its last attempt behind, as a document, unless it never ran or ended long ago.
-- Twin of core/fences.py, leaves_fence(), whose other condition the caller checks.
local function leave_fence(id, record, ended_at)
    local attempt = read('>I4', record, ATTEMPT)
    if attempt > 0 and ended_at > now - FENCE_MICROSECONDS then
        local name, ends = text_of(id), now + FENCE_MICROSECONDS
        later('HSET', DOCUMENTS .. FENCE, name, pack('>I8i8i8B', 1, now, ends, 0) .. attempt)
        later('ZADD', DOCUMENT_TIMES .. FENCE, now_text, name)
        later('ZADD', DOCUMENT_ENDS .. FENCE, whole(ends), name)
    end
end

-- Delete the tasks that were marked.
local function write_removed()
    if #removed_ids == 0 then
        return
    end
    if call('EXISTS', HOLDS) == 1 then
        for i, hold in ipairs(call('HMGET', HOLDS, unpack(removed_ids))) do
            if hold and call('HGET', UNIQUES, sub(hold, 1, 16)) == removed_ids[i] then
                call('HDEL', UNIQUES, sub(hold, 1, 16))
            end
        end
        call('HDEL', HOLDS, unpack(removed_ids))
    end
    for _, key in ipairs({TASKS, FINISHED, ERRORS, PROGRESS, RUNS, TRAIL}) do
        call('HDEL', key, unpack(removed_ids))
    end
    call('ZREM', INDEX, unpack(removed_ids))
    if call('EXISTS', PARENTS) == 1 then
        for i, is_parent in ipairs(call('SMISMEMBER', PARENTS, unpack(removed_ids))) do
            if is_parent == 1 then
                call('DEL', DEPENDENTS .. removed_ids[i])
            end
        end
        call('SREM', PARENTS, unpack(removed_ids))
        call('ZREM', KEPT, unpack(removed_ids))
    end
    write()
    removed_ids = {}
end
