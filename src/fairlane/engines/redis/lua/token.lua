#!lua flags=no-writes
-- ARGV: digest, and the id if that is known instead. Answers the time, then the token's id and the token
--       if there is one.
local id = ARGV[2] or call('HGET', TOKEN_DIGESTS, ARGV[1])
local token = id and call('HGET', TOKENS, id)
return {now_text, token and {id, token} or {}}
