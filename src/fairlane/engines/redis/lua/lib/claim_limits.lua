-- How many tasks of limited types may be claimed now. The rules of core/lanes.py run in the script, where
-- no other claim runs at the same time.
local opening_wait  -- microseconds until the first closed limit allows a claim again

-- Return the tokens in a type's bucket, refilled up to now, and the time of the refill.
-- Twin of core/lanes.py, refilled().
local function refilled(type, rate)
    local burst = math.max(1, rate)
    local stored = call('HGET', BUCKETS, type)
    if not stored then
        return burst, now
    end
    local tokens, at = string.match(stored, '(%S+) (%S+)')
    -- A clock that steps back must not remove tokens, and must not add them twice.
    local gained = math.max(0, now - at) * rate / 1000000
    return math.min(burst, tokens + gained), math.max(now, tonumber(at))
end

-- Return what a claim may still take of a type. `shared` is the allowance of all limited types
-- together. Twin of core/lanes.py, allowance() and opens_in().
local function allowance(quota, most, shared)
    local left = {type = quota.type, most = most, taken = 0, shared = shared, counted = quota.slots > 0}
    local wait = 0
    if quota.slots > 0 then
        local held = 0
        for _, lane in ipairs(quota.counted) do
            held = held + call('SCARD', SLOTS .. lane)
        end
        left.most = math.min(left.most, math.max(0, quota.slots - held))
    end
    if quota.rate > 0 then
        left.tokens, left.at = refilled(quota.type, quota.rate)
        left.most = math.min(left.most, math.floor(left.tokens))
        wait = (1 - left.tokens) / quota.rate * 1000000
    end
    if quota.open_until > now and quota.opened_at - now <= STEP then
        left.most = 0
        wait = math.max(wait, quota.open_until - now)
    end
    if wait > 0 then
        opening_wait = math.min(opening_wait or wait, wait)
    end
    return left
end

-- Take one task, unless the allowance of its type or the shared one is used up.
local function take_one(left)
    local shared = left.shared
    if left.taken >= left.most or shared.taken >= shared.most then
        return false
    end
    left.taken, shared.taken = left.taken + 1, shared.taken + 1
    return true
end

-- Write the bucket of a type without the tokens of the tasks that were taken.
local function spend_tokens(left)
    if left.tokens and left.taken > 0 then
        later('HSET', BUCKETS, left.type, string.format('%.17g %.0f', left.tokens - left.taken, left.at))
    end
end
