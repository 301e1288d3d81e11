-- A document is stored as documents.py says: version, at, expiry (8 bytes each), the length of its alias
-- (one byte), the alias, the value.
local function alias_of(document)
    return sub(document, 26, 25 + byte(document, 25))
end

local function value_of(document)
    return sub(document, 26 + byte(document, 25))
end

-- Return the value of the settings' document, or false if there is none.
local function stored_settings()
    local document = call('HGET', DOCUMENTS .. SETTINGS, SETTINGS)
    return document and value_of(document)
end

local function drop_document(kind, id, document)
    later('HDEL', DOCUMENTS .. kind, id)
    later('ZREM', DOCUMENT_TIMES .. kind, id)
    later('ZREM', DOCUMENT_ENDS .. kind, id)
    if byte(document, 25) > 0 then
        later('HDEL', DOCUMENT_ALIASES .. kind, alias_of(document))
    end
end

-- Delete documents that have expired. Returns how many.
local function expire(kind, limit)
    local ids = call('ZRANGE', DOCUMENT_ENDS .. kind, '-inf', now_text, 'BYSCORE', 'LIMIT', 0, limit)
    for _, id in ipairs(ids) do
        drop_document(kind, id, call('HGET', DOCUMENTS .. kind, id))
    end
    return #ids
end

-- ARGV: kind, how many there may be ('' for any number), then of each document its id, the version that
--       was read (8 bytes), it as it is to be stored ('' to delete it), its time, its expiry ('' for none).
local function write_documents()
    local kind, most, new = ARGV[1], tonumber(ARGV[2]), 0
    local key, ends, aliases = DOCUMENTS .. kind, DOCUMENT_ENDS .. kind, DOCUMENT_ALIASES .. kind
    local ABSENT = string.rep('\0', 8)
    for i = 3, #ARGV, 5 do
        local id, version, document, at, expiry = unpack(ARGV, i, i + 4)
        local stored = call('HGET', key, id)
        if (stored and sub(stored, 1, 8) or ABSENT) ~= version then
            return 'overtaken'
        elseif document == '' then
            drop_document(kind, id, stored)
        else
            new = new + (stored and 0 or 1)
            later('HSET', key, id, document)
            later('ZADD', DOCUMENT_TIMES .. kind, at, id)
            if expiry ~= '' then
                later('ZADD', ends, expiry, id)
            elseif stored then
                later('ZREM', ends, id)
            end
            local alias = alias_of(document)
            if alias ~= '' then
                local owner = call('HGET', aliases, alias)
                if owner and owner ~= id then
                    return 'taken'
                end
                later('HSET', aliases, alias, id)
            end
        end
    end
    if most and new > 0 and call('HLEN', key) + new > most then
        return 'full'
    end
    write()
    return 'done'
end
