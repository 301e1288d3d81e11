#!lua flags=allow-oom
-- needs: record accounting moves replays
-- Replay tasks.
-- ARGV: the states that can be replayed and the terminal states (one byte each); the move: verb, state,
--       retry_count ('' to keep it), returns, level ('' to keep it); the label under which a change of
--       level is counted; then task ids. Returns pairs in their order: 1 if replayed or 0, the state
--       before (0 if there is no task).
local allowed, terminal = ARGV[1], ARGV[2]
local move = {
    verb = ARGV[3], state = tonumber(ARGV[4]), label = '', retries = ARGV[5], returns = ARGV[6], level = ARGV[7],
    moved_label = ARGV[8],
}
local ids, answers, ready = {unpack(ARGV, 9)}, {}, false

local holds_of = #ids > 0 and call('EXISTS', HOLDS) == 1 and call('HMGET', HOLDS, unpack(ids))
for i, record in ipairs(all_records(ids)) do
    local id = ids[i]
    local state = record and byte(record)
    if record and string.find(allowed, char(state), 1, true) then
        run_again(move, id, record, string.find(terminal, char(state), 1, true))
        if holds_of and holds_of[i] then
            call('HSETNX', UNIQUES, sub(holds_of[i], 1, 16), id)
        end
        ready = true
        answers[i] = {1, state}
    else
        answers[i] = {0, state or 0}
    end
end
write()
update_streams()
post()
if ready then
    wake()
end
return answers
