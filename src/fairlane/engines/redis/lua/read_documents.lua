#!lua flags=no-writes
-- ARGV: kind, ids (maybe none). Returns the time, and the documents.
local stored = #ARGV > 1 and call('HMGET', DOCUMENTS .. ARGV[1], unpack(ARGV, 2)) or {}
return {now_text, stored}
