-- Circuit breakers: how the runs of a type went decides whether more of them start. A script that ends
-- runs counts them, so no run is lost and none is counted twice.

-- Return the circuit of a type after `good` successes and `bad` failures that ended now: the times of its
-- recent failures, and until when it is open (nil: closed). Twin of core/breaker.py, after().
local function circuit_after(failures, open_until, breaker, good, bad)
    local most, within, cooldown = breaker[1], math.floor(breaker[2] * 1000000), math.floor(breaker[3] * 1000000)
    if open_until then
        -- If it opened while the clock was ahead, its cool-down is over.
        local cools = now < open_until and open_until - cooldown - now <= STEP
        if cools or good + bad == 0 then
            return failures, open_until  -- what ends now began before it opened
        end
        return {}, bad > 0 and now + cooldown or nil
    end
    local recent = {}
    for _, at in ipairs(failures) do
        if at > now - within and at - now <= STEP then
            recent[#recent + 1] = at
        end
    end
    for _ = 1, bad do
        recent[#recent + 1] = now
    end
    if #recent >= most then
        return {}, now + cooldown
    end
    return recent
end

-- Return a stored circuit: the times of its failures, and until when it is open (nil: closed).
local function read_circuit(stored)
    local failures, open_until = unpack(cjson.decode(stored))
    return failures, open_until ~= cjson.null and open_until or nil
end

-- Return a circuit as core/breaker.py reads it. cjson would lose digits of the times.
local function stored_circuit(failures, open_until)
    local times = {}
    for i, at in ipairs(failures) do
        times[i] = whole(at)
    end
    return '[[' .. table.concat(times, ',') .. '],' .. (open_until and whole(open_until) or 'null') .. ']'
end

-- Return the type of a lane.
local function type_of(lane)
    return cjson.decode(call('ZRANGEBYSCORE', LANES, lane, lane)[1])[2]
end

-- Return the lanes of these types (type -> true).
local function lanes_of(types)
    local found, stored = {}, call('ZRANGE', LANES, 0, -1, 'WITHSCORES')
    for i = 1, #stored, 2 do
        if types[cjson.decode(stored[i])[2]] then
            found[#found + 1] = stored[i + 1]
        end
    end
    return found
end

-- Count the runs of each type ({good = number, bad = number}), and open and close circuits. `gone` are the
-- runs that this script ends, which take no slot any more. Return true if a circuit opened or closed.
local function count_runs(by_type, gone)
    local turned = {}
    for type, runs in pairs(by_type) do
        local stored, breaker = call('HGET', CIRCUITS, type), call('HGET', CONTROLS, 'breaker ' .. type)
        if stored and breaker then
            local failures, before = read_circuit(stored)
            local recent, open_until = circuit_after(failures, before, cjson.decode(breaker), runs.good, runs.bad)
            local changed = stored_circuit(recent, open_until)
            if changed ~= stored then
                later('HSET', CIRCUITS, type, changed)
            end
            if open_until ~= before then
                set_or_drop(CONTROLS, 'open_until ' .. type, open_until and whole(open_until) or '')
                turned[type] = true
            end
        end
    end
    if not next(turned) then
        return false
    end
    -- The number of slots changes between one and several, so the taken slots must be counted.
    count_slots(lanes_of(turned), gone)
    bump()
    return true
end
