#!lua
-- ARGV: how many schedules there may be, id, next_at and "never" in bytes, definition. A schedule is
--       stored as schedules.py says: next_at, last_at, created_at, updated_at (8 bytes each), version.
local id, next_at, never, definition = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local stored = call('HGET', SCHEDULES, id)
local last_at, created_at, version = never, stamp, 1
if stored then
    last_at, created_at, version = sub(stored, 9, 16), sub(stored, 17, 24), read('>I4', stored, 33) + 1
elseif call('HLEN', SCHEDULES) >= tonumber(ARGV[1]) then
    return 'full'
end
local new = next_at .. last_at .. created_at .. stamp .. pack('>I4', version) .. definition
call('HSET', SCHEDULES, id, new)
return new
