#!lua flags=allow-oom
-- needs: record accounting moves dependents
-- Cancel tasks.
-- ARGV: the states that can be cancelled (one byte each), then task ids. Returns triples in their order:
--       1 if cancelled or 0, the state before (0 if there is no task), its worker.
local allowed = ARGV[1]
local ids, answers = {unpack(ARGV, 2)}, {}
for i, record in ipairs(all_records(ids)) do
    local id = ids[i]
    local state = record and byte(record)
    if not record then
        answers[i] = {0, 0, ''}
    elseif not string.find(allowed, char(state), 1, true) then
        answers[i] = {0, state, ''}
    else
        end_by(MOVE_CANCEL, id, record)
        answers[i] = {1, state, worker_of(record)}
    end
end
release_dependents()
update_streams()
post()
if freed > 0 then
    wake()
end
return answers
