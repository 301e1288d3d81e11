-- A document is stored as documents.py says: version, at, expiry (8 bytes each), the length of its alias
-- (one byte), the alias, the value.
local function value_of(document)
    return sub(document, 26 + byte(document, 25))
end

-- Return the value of the settings' document, or false if there is none.
local function stored_settings()
    local document = call('HGET', DOCUMENTS .. SETTINGS, SETTINGS)
    return document and value_of(document)
end
