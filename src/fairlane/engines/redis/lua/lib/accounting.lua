-- Accounting: count the transitions of one script, and write them as one journal entry.
--
-- A passage is a group of tasks of one lane and level that make the same transition in one script. A
-- journal entry has a field `at`, then one field per passage. The field's name is "verb lane:level
-- worker" (the worker may be empty). Its value has 28 bytes per task: the run, and its duration in
-- microseconds (-1: untimed). An event of a worker itself has the name "verb worker" and no value.
-- Entries are numbered without a gap, so that a reader notices when it has missed one.
local UNTIMED = string.rep('\255', 8)
local passages_by_key, passages = {}, {}

-- Return the passage for a transition; create it if this is its first task. `transition` is
-- source:target:label:bucket, see core/tally.py; without it the passage is not counted.
local function passage_for(verb, place, worker, transition)
    local key = verb .. place .. worker .. (transition or '')
    local found = passages_by_key[key]
    if not found then
        local stream = stream_of(place)
        found = {name = verb .. ' ' .. stream .. ' ' .. worker, lines = {}, duration = 0}
        found.tally = transition and stream .. ':' .. transition
        passages_by_key[key] = found
        passages[#passages + 1] = found
    end
    return found
end

-- Return the transition of a task with this record under a move, untimed.
local function transition_of(move, record)
    return byte(record) .. ':' .. move.state .. ':' .. move.label .. ':-1'
end

-- Add one untimed task to a passage. `post` appends `between` to each line: the missing duration, and
-- for new tasks, whose lines are only ids, also attempt 0.
local function add_task(passage, run)
    local lines = passage.lines
    lines[#lines + 1] = run
end

-- Copy the lines that `add_run` has marked. Neighbouring lines are copied as one slice.
local function flush_lines(passage)
    if passage.block then
        passage.lines[#passage.lines + 1] = sub(passage.block, passage.from, passage.ends - 1)
    end
end

-- Add one task that ran for `duration` microseconds. Its line starts at position `at` of `block`.
local function add_run(passage, block, at, duration)
    if passage.ends ~= at then
        flush_lines(passage)
        passage.block, passage.from = block, at
    end
    passage.ends, passage.times = at + LINE, (passage.times or 0) + 1
    if duration > 0 then
        passage.duration = passage.duration + duration
    end
end

-- Add an event of a worker itself.
local function add_worker_event(verb, worker)
    passages[#passages + 1] = {name = verb .. ' ' .. worker, lines = {}}
end

-- Count a transition without a journal entry: a pruned task, or a task that leaves its level for
-- another one, whose passage is in the journal.
local function count_only(place, transition)
    local passage = passage_for('', place, '', transition)
    passage.counted_only = true
    passage.lines[#passage.lines + 1] = ''
end

-- Write the counters and the journal entry of this script.
local function post()
    local entry = {'at', now_text}
    for _, passage in ipairs(passages) do
        flush_lines(passage)
        if passage.tally then
            call('HINCRBY', TALLY, passage.tally, passage.times or #passage.lines)
            if passage.duration > 0 then
                call('HINCRBY', TALLY_TIME, passage.tally, whole(passage.duration))
            end
        end
        if not passage.counted_only then
            entry[#entry + 1] = passage.name
            local between = passage.times and '' or passage.between or UNTIMED
            entry[#entry + 1] = table.concat(passage.lines, between) .. (passage.lines[1] and between or '')
        end
    end
    if #entry > 2 then
        call('XADD', JOURNAL, 'MAXLEN', '~', JOURNAL_ENTRIES, '0-*', unpack(entry))
    end
end
