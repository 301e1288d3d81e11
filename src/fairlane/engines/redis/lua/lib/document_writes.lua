-- Writes of documents, prepared before anything is written. In a block, because a script has room for 200
-- local names.
local drop_document, prepare_documents
do
    -- The length of its alias is the 25th byte of a document, as documents.py says.
    local function alias_of(document)
        return sub(document, 26, 25 + byte(document, 25))
    end

    function drop_document(kind, id, document)
        later('HDEL', DOCUMENTS .. kind, id)
        later('ZREM', DOCUMENT_TIMES .. kind, id)
        later('ZREM', DOCUMENT_ENDS .. kind, id)
        if byte(document, 25) > 0 then
            later('HDEL', DOCUMENT_ALIASES .. kind, alias_of(document))
        end
    end

    -- Prepare writes of documents, described in ARGV from a position on: kind, how many there may be ('' for
    -- any number), then of each document its id, the version that was read (8 bytes), it as it is to be stored
    -- ('' to delete it), its time, its expiry ('' for none). Returns 'done', or why nothing may be written.
    function prepare_documents(first)
        local kind, most, new = ARGV[first], tonumber(ARGV[first + 1]), 0
        local key, ends, aliases = DOCUMENTS .. kind, DOCUMENT_ENDS .. kind, DOCUMENT_ALIASES .. kind
        local ABSENT = string.rep('\0', 8)
        for i = first + 2, #ARGV, 5 do
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
        return 'done'
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

-- Write documents, described in ARGV.
local function write_documents()
    local prepared = prepare_documents(1)
    if prepared == 'done' then
        write()
    end
    return prepared
end
