#!lua flags=allow-oom
-- needs: record accounting moves dependents replays
-- Run tasks of workflows again that have ended, each after its parents.
-- ARGV: the states from which tasks can be rerun (one byte each); verb, state, retry_count and returns of the
--       move to the queue, and of the move to those that wait for parents; then per task: its id, the version
--       that it must have (four bytes), '1' if it is tolerant or '0' if not, the ids of its parents.
-- Returns pairs in the order of the tasks: 1 if it runs again or 0, the state before (0 if there is no task);
-- or {'left'} if dependents of an earlier end of a parent were left over: call again.
local allowed, first = ARGV[1], 10

local function move_at(i)
    return {verb = ARGV[i], state = tonumber(ARGV[i + 1]), label = '', retries = ARGV[i + 2], returns = ARGV[i + 3],
        level = ''}
end
local queues, waits = move_at(2), move_at(6)

-- New bonds would look like those of dependents that are left over, which are resolved first.
local left = false
if call('EXISTS', ENDED_PARENTS) == 1 then
    for i = first, #ARGV, 4 do
        for at = 1, #ARGV[i + 3], 16 do
            local parent = sub(ARGV[i + 3], at, at + 15)
            local state = call('HGET', ENDED_PARENTS, parent)
            if state then
                left = true
                if resolve_dependents(parent, tonumber(state)) then
                    call('HDEL', ENDED_PARENTS, parent)
                end
            end
        end
    end
end
if left then
    release_dependents()
    update_streams()
    post()
    wake()
    return {'left'}
end

-- Return the state of a task as a parent, or nil if there is none. A state that is not an end counts as
-- queued. A result is not read for that: it may be large.
local known_states = {}
local function state_as_parent(id)
    local state = known_states[id]
    if state == nil then
        state = false
        if call('HEXISTS', FINISHED, id) == 1 then
            state = COMPLETED
            for _, bad in ipairs({FAILED, DEAD_LETTER, CANCELLED}) do
                if call('ZSCORE', ENDED_BADLY .. bad, id) then
                    state = bad
                end
            end
        elseif call('HEXISTS', TASKS, id) == 1 then
            state = QUEUED
        end
        known_states[id] = state
    end
    return state
end

local answers, ready = {}, false
local any_holds = call('EXISTS', HOLDS) == 1
for i = first, #ARGV, 4 do
    local id, version, tolerant = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    local record = all_records({id})[1]
    local state = record and byte(record) or 0
    local pending = nil
    if record and known_states[id] ~= QUEUED and string.find(allowed, char(state), 1, true)
        and sub(record, VERSION, UPDATED_AT - 1) == version then
        pending = pending_of(ARGV[i + 3], tolerant, state_as_parent)
    end
    answers[#answers + 1] = {pending and 1 or 0, state}
    if pending then
        run_again(#pending > 0 and waits or queues, id, record, true)
        known_states[id] = QUEUED
        ready = true
        for _, parent in ipairs(pending) do
            later('SADD', CHILDREN .. parent, id)
        end
        if #pending > 0 then
            later('HSET', BONDS, id, tolerant .. table.concat(pending))
        end
        local hold = any_holds and call('HGET', HOLDS, id)
        if hold then
            call('HSETNX', UNIQUES, sub(hold, 1, 16), id)
        end
    end
end
write()
update_streams()
post()
if ready then
    wake()
end
return answers
