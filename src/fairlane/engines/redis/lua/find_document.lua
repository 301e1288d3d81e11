#!lua flags=no-writes
-- ARGV: kind, alias. Returns the time, and the document's id and the document if there is one.
local id = call('HGET', DOCUMENT_ALIASES .. ARGV[1], ARGV[2])
return {now_text, id, id and call('HGET', DOCUMENTS .. ARGV[1], id)}
