#!lua flags=allow-oom
-- needs: record books moves ends
-- ARGV: the states that can be cancelled (as bytes), then ids.
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
        local worker, run = worker_of(record), run_of(id, record)
        if state == EXECUTING then
            let_go(id, record, run, worker)
            record_run(id, sub(record, ATTEMPT, WORKER - 1), worker, bytes_of(record, STARTED_AT), 'cancelled', '')
        else
            withdraw(id, record)
        end
        finish(id, moved(record, CANCELLED, NONE, bytes_of(record, CLAIMED_AT), bytes_of(record, STARTED_AT), sub(record, READY_AT)), CANCELLED)
        later('HDEL', ERRORS, id)
        note(passage('cancel', place_of(record), worker, state .. ':' .. CANCELLED .. '::-1'), run)
        answers[i] = {1, state, worker}
    end
end
conclude()
drop_empty_streams()
post()
if freed > 0 then
    wake()
end
return answers
