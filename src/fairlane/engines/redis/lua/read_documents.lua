#!lua flags=no-writes
-- ARGV: kind, ids. Returns the time, and the documents.
return {now_text, call('HMGET', DOCUMENTS .. ARGV[1], unpack(ARGV, 2))}
