-- The books of one script: its transitions counted, and told in one entry of the journal.
--
-- A passage is tasks of one lane and level that went through the same transition. An entry of the
-- journal has a field `at`, and then one per passage. Its name is "verb lane:level worker" (the
-- worker may be empty), its value 28 bytes a task: the run, and how many microseconds it took (-1:
-- untimed). What a worker itself went through is named "verb worker" and has no value. Entries are
-- numbered without a gap, so that a reader notices what it missed.
local UNTIMED = string.rep('\255', 8)
local passages, told = {}, {}

-- `change` is source:target:label:bucket, see core/tally.py; without one nothing is counted.
local function passage(verb, place, worker, change)
    local key = verb .. place .. worker .. (change or '')
    local found = passages[key]
    if not found then
        local stream = stream_of(place)
        found = {name = verb .. ' ' .. stream .. ' ' .. worker, lines = {}, duration = 0}
        found.tally = change and stream .. ':' .. change
        passages[key] = found
        told[#told + 1] = found
    end
    return found
end

-- What is counted of a task with this record that moves, untimed.
local function change_of(move, record)
    return byte(record) .. ':' .. move.state .. ':' .. move.label .. ':-1'
end

-- One task went through it. (That all of its passage are untimed is written when it is posted; for new
-- tasks, whose lines are mere ids, also that this is no attempt: `between`.)
local function note(through, run)
    local lines = through.lines
    lines[#lines + 1] = run
end

-- Lines that were taken over as they came: those that follow each other are one slice.
local function take_over(through)
    if through.block then
        through.lines[#through.lines + 1] = sub(through.block, through.from, through.ends - 1)
    end
end

-- One task that ran for a time (microseconds) went through it; its line stands in `block` from `at` on.
local function note_run(through, block, at, duration)
    if through.ends ~= at then
        take_over(through)
        through.block, through.from = block, at
    end
    through.ends, through.times = at + LINE, (through.times or 0) + 1
    if duration > 0 then
        through.duration = through.duration + duration
    end
end

local function note_worker(verb, worker)
    told[#told + 1] = {name = verb .. ' ' .. worker, lines = {}}
end

-- Counted, but not told: a task leaves a level for another, where its passage is told; or is pruned.
local function count_leaving(place, change)
    local through = passage('', place, '', change)
    through.untold = true
    through.lines[#through.lines + 1] = ''
end

local function post()
    local entry = {'at', now_text}
    for _, through in ipairs(told) do
        take_over(through)
        if through.tally then
            call('HINCRBY', TALLY, through.tally, through.times or #through.lines)
            if through.duration > 0 then
                call('HINCRBY', TALLY_TIME, through.tally, whole(through.duration))
            end
        end
        if not through.untold then
            entry[#entry + 1] = through.name
            local between = through.times and '' or through.between or UNTIMED
            entry[#entry + 1] = table.concat(through.lines, between) .. (through.lines[1] and between or '')
        end
    end
    if #entry > 2 then
        call('XADD', JOURNAL, 'MAXLEN', '~', JOURNAL_ENTRIES, '0-*', unpack(entry))
    end
end
