-- Find the first tasks of several streams, by effective priority, then ready_at, then id.
--
-- Within a stream ready_at only grows, so effective priority only falls: each stream is in order
-- already. A heap of streams, ordered by their first tasks, merges them and reads no further than
-- necessary.

-- Compare ids as numbers, because Lua compares texts by the server's locale.
local function id_before(a, b)
    local a1, a2, a3 = read('>I6I6I4', a)
    local b1, b2, b3 = read('>I6I6I4', b)
    if a1 ~= b1 then
        return a1 < b1
    elseif a2 ~= b2 then
        return a2 < b2
    end
    return a3 < b3
end

local function before(a, b)
    if a.effective ~= b.effective then
        return a.effective > b.effective
    elseif a.ready_at ~= b.ready_at then
        return a.ready_at < b.ready_at
    end
    return id_before(a.id, b.id)
end

local youth, levels = tonumber(ARGV[9]), nil

-- Return the effective level of a task of the stream. The segments of a level, youngest first, are
-- pairs of the age at which they end (-1: never) and the effective level. The level found last is
-- valid for tasks up to `level_until`, so it is not computed again. Twin of core/priority.py,
-- Aging.effective().
local function effective_level(stream, ready_at)
    if now - ready_at < youth then
        stream.effective = stream.level
        return stream.level
    end
    if not stream.segments then
        levels = levels or cjson.decode(ARGV[8])
        stream.segments = levels[stream.level + 1]
    end
    if not stream.level_until or ready_at > stream.level_until then
        local from_age = 0
        for _, segment in ipairs(stream.segments) do
            stream.effective = segment[2]
            stream.level_until = now - from_age
            if segment[1] < 0 or now - ready_at < segment[1] then
                break
            end
            from_age = segment[1]
        end
        stream.level_until = math.max(stream.level_until, ready_at)
    end
    return stream.effective
end

-- Step to the stream's next task; return false at its end. Each read is twice as large as the one
-- before. `due_only`: the stream ends where tasks are not due yet.
local function advance(stream)
    stream.next = stream.next + 2
    if stream.next > #stream.chunk then
        local from = stream.read
        stream.chunk = call('ZRANGE', stream.key, from, from + stream.size - 1, 'WITHSCORES')
        stream.read, stream.size, stream.next = from + stream.size, 2 * stream.size, 1
    end
    stream.id = stream.chunk[stream.next]
    if not stream.id then
        return false
    end
    stream.ready_at = tonumber(stream.chunk[stream.next + 1])
    if stream.due_only and stream.ready_at > now then
        return false
    end
    effective_level(stream, stream.ready_at)
    return true
end

local function sift_down(heap, i)
    local stream = heap[i]
    while 2 * i <= #heap do
        local child = 2 * i
        if heap[child + 1] and before(heap[child + 1], heap[child]) then
            child = child + 1
        end
        if not before(heap[child], stream) then
            break
        end
        heap[i], i = heap[child], child
    end
    heap[i] = stream
end

local function remove_first(heap)
    heap[1] = heap[#heap]
    heap[#heap] = nil
    if #heap > 1 then
        sift_down(heap, 1)
    end
end

-- Return the ids of up to `most` tasks, and the stream of each. `stream.left` is the allowance of a
-- limited stream.
local function merge(streams, most)
    local heap, ids, from = {}, {}, {}
    if most < 1 then
        return ids, from
    end
    for _, stream in ipairs(streams) do
        stream.read, stream.next, stream.chunk = 0, 1, {}
        stream.size = math.ceil(most / #streams)
        if advance(stream) then
            heap[#heap + 1] = stream
        end
    end
    for i = math.floor(#heap / 2), 1, -1 do
        sift_down(heap, i)
    end
    while #heap > 0 and #ids < most do
        local stream = heap[1]
        if stream.left and not take_one(stream.left) then
            remove_first(heap)  -- its allowance is used up: the rest of the stream stays
        else
            ids[#ids + 1], from[#from + 1] = stream.id, stream
            stream.taken = stream.taken + 1
            if advance(stream) then
                sift_down(heap, 1)
            else
                remove_first(heap)
            end
        end
    end
    return ids, from
end

-- Do the same for a single stream without a limit, where there is nothing to merge. Reading it without
-- scores, which only a merge compares, is twice as fast.
local function take_first(stream, most)
    local ids, from = call('ZRANGE', stream.key, 0, most - 1), {}
    for i = 1, #ids do
        from[i] = stream
    end
    stream.taken = #ids
    return ids, from
end
