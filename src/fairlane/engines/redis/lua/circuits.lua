#!lua flags=no-writes
-- ARGV: types. Answers now, and how each fares.
return {now_text, call('HMGET', CIRCUITS, unpack(ARGV))}
