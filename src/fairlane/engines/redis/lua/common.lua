-- The beginning of every script: check the store's format and read the clock, once.
local call = redis.call
local sub, byte, char = string.sub, string.byte, string.char
local read, pack = struct.unpack, struct.pack

local format, catalogue_version, clock_offset = unpack(call('HMGET', META, 'format', 'catalogue', 'clock_offset'))
if format ~= FORMAT then
    return redis.error_reply('FORMAT ' .. (format or '0'))
end

local seconds, microseconds = unpack(call('TIME'))
local now = seconds * 1000000 + microseconds + (clock_offset or 0)
local stamp = pack('>I8', now)

-- Return a whole number as text. Lua's own conversion loses digits of large numbers.
local function whole(number)
    return string.format('%.0f', number)
end

local now_text = whole(now)

-- Deferred writes: `later` and `gathered` collect commands, and `write` runs them, so that a script
-- decides everything before it writes anything. Commands with the same name and key become one call,
-- which is a third cheaper.
local waiting, in_order = {}, {}

-- Return the deferred call with this command and key. Hot loops append arguments to it themselves.
local function gathered(command, key)
    local keys = waiting[command]
    if not keys then
        keys = {}
        waiting[command] = keys
    end
    local arguments = keys[key]
    if not arguments then
        arguments = {command, key}
        keys[key] = arguments
        in_order[#in_order + 1] = arguments
    end
    return arguments
end

-- Add one or two arguments to the deferred call with this command and key.
local function later(command, key, first, second)
    local arguments = gathered(command, key)
    arguments[#arguments + 1] = first
    if second then
        arguments[#arguments + 1] = second
    end
end

local MOST_ARGUMENTS = 6000  -- even, so that no pair is split; Lua's own limit is 8000

-- Run the deferred calls in the order in which they were first used.
local function write()
    for _, arguments in ipairs(in_order) do
        if #arguments > MOST_ARGUMENTS then
            for from = 3, #arguments, MOST_ARGUMENTS do
                local upto = math.min(from + MOST_ARGUMENTS - 1, #arguments)
                call(arguments[1], arguments[2], unpack(arguments, from, upto))
            end
        elseif #arguments > 2 or arguments[1] == 'DEL' then
            call(unpack(arguments))
        end
    end
    waiting, in_order = {}, {}
end

-- Wake the workers that wait for tasks.
local function wake()
    call('PUBLISH', WAKE, '')
end
