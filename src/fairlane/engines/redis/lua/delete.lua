#!lua flags=allow-oom
-- needs: record accounting moves dependents deletion
-- Delete tasks. A retrying task is cancelled first, so that its dependents are released.
-- ARGV: the states that can be deleted (one byte each), then task ids. Returns pairs in their order: 1 if
--       deleted or 0, the state before (0 if there is no task).
local allowed = ARGV[1]
local ids, answers, gone = {unpack(ARGV, 2)}, {}, {}
for i, record in ipairs(all_records(ids)) do
    local id = ids[i]
    local state = record and byte(record)
    if record and string.find(allowed, char(state), 1, true) then
        answers[i] = {1, state}
        if state == RETRYING then
            end_by(MOVE_CANCEL, id, record)
            state = MOVE_CANCEL.state
        end
        gone[#gone + 1] = {id, record, state}
    else
        answers[i] = {0, state or 0}
    end
end
release_dependents()
for _, each in ipairs(gone) do
    local id, record, state = unpack(each)
    remove(id, state)
    leave_fence(id, record, state == byte(record) and time_of(record, UPDATED_AT) or now)
    add_task(passage_for('delete', place_of(record), '', state .. ':0::-1'), run_of(id, record))
end
write_removed()
update_streams()
post()
if freed > 0 then
    wake()
end
return answers
