#!lua flags=no-writes
-- ARGV: types. Returns now, and the circuit of each type (JSON).
return {now_text, call('HMGET', CIRCUITS, unpack(ARGV))}
