#!lua flags=no-writes
-- ARGV: kind, ids. Answers the time, and the documents.
return {now_text, call('HMGET', DOCUMENTS .. ARGV[1], unpack(ARGV, 2))}
