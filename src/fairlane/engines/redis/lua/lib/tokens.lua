-- A token is stored as tokens.py says: created_at, expires_at (8 bytes each), its parent's id (36, blank
-- if it has none), its digest (32), its terms. One that does not expire has the largest time there is.
local NEVER = '\127\255\255\255\255\255\255\255'

local function expires_of(token)
    return read('>I8', token, 9)
end

local function forget_token(id, token)
    later('HDEL', TOKENS, id)
    later('HDEL', TOKEN_DIGESTS, sub(token, 53, 84))
    later('ZREM', TOKEN_ENDS, id)
end

-- A token that counts and the sessions made from it, as pairs of id and token; none if there is none.
local function family_of(id)
    local token = call('HGET', TOKENS, id)
    if not token or expires_of(token) <= now then
        return {}
    end
    local family, all = {{id, token}}, call('HGETALL', TOKENS)
    for i = 1, #all, 2 do
        if sub(all[i + 1], 17, 52) == id then
            family[#family + 1] = {all[i], all[i + 1]}
        end
    end
    return family
end
