-- What every script begins with: the store is checked and the clock is read, once.
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

-- A whole number as text: Lua's own way of writing large ones loses digits.
local function whole(number)
    return string.format('%.0f', number)
end

local now_text = whole(now)

-- Writes wait here until `write`, so that nothing is written before everything is decided. Those
-- with the same command and key become one call, which is a good third cheaper.
local waiting, in_order = {}, {}

-- The call to which everything with this command and key belongs: loops append to it themselves.
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

local function later(command, key, first, second)
    local arguments = gathered(command, key)
    arguments[#arguments + 1] = first
    if second then
        arguments[#arguments + 1] = second
    end
end

local MOST_ARGUMENTS = 6000  -- even, so that no pair is torn; Lua itself stops at 8000

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

local function wake()
    call('PUBLISH', WAKE, '')
end
