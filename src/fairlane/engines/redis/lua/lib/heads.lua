-- Read the parts of tasks that a filter needs. Redis cannot read a part of a hash value, so payloads and
-- results are read here as well, although they are not returned. A script stops after MOST_BYTES of them.
local MOST_BYTES, AT_ONCE = 8000000, 50

-- Return the spec of a task as submitted; see record.py for the layout.
local function spec_of(task)
    local key_length, spec_length = read('>HI4', task, HEAD + 3)
    return sub(task, HEAD + 9 + key_length, HEAD + 8 + key_length + spec_length)
end

-- Return a task as submitted without its payload, which comes last.
local function without_payload(task)
    local key_length, spec_length = read('>HI4', task, HEAD + 3)
    return sub(task, 1, HEAD + 8 + key_length + spec_length)
end

-- Return the records of a few tasks (false for one that does not exist), their specs if wanted, and the
-- number of bytes read.
local function records_of(ids, with_specs)
    local records, live = call('HMGET', FINISHED, unpack(ids)), call('HMGET', LIVE, unpack(ids))
    local wanted, places, specs, bytes = {}, {}, {}, 0
    for i, id in ipairs(ids) do
        records[i] = records[i] or live[i]
        specs[i] = ''
        if with_specs or not records[i] then
            wanted[#wanted + 1], places[#places + 1] = id, i
        end
        bytes = bytes + #(records[i] or '')
    end
    for i, task in ipairs(wanted[1] and call('HMGET', TASKS, unpack(wanted)) or {}) do
        if task then
            local place = places[i]
            records[place] = records[place] or task
            specs[place] = with_specs and spec_of(task)
            bytes = bytes + #task
        end
    end
    return records, specs, bytes
end

-- Return the heads of records as one text (zeros for a task that does not exist), and lists of workers
-- and specs if wanted.
local function read_heads(ids, with_workers, with_specs)
    local heads, workers, specs, read_so_far = {}, {}, {}, 0
    local GONE = string.rep('\0', HEAD)
    for from = 1, #ids, AT_ONCE do
        local some = {unpack(ids, from, math.min(from + AT_ONCE - 1, #ids))}
        local records, some_specs, bytes = records_of(some, with_specs)
        for i, record in ipairs(records) do
            local next = #heads + 1
            heads[next] = record and sub(record, 1, HEAD) or GONE
            workers[next] = with_workers and (record and worker_of(record) or '') or nil
            specs[next] = with_specs and some_specs[i] or nil
        end
        read_so_far = read_so_far + bytes
        if read_so_far > MOST_BYTES then
            break
        end
    end
    return table.concat(heads), workers, specs
end
