#!lua flags=allow-oom
-- ARGV: role, candidate, for how many microseconds.
local role, candidate = ARGV[1], ARGV[2]
local taken = call('HGET', ROLES, role)
if taken and read('>I8', taken) > now and sub(taken, 9) ~= candidate then
    return 0
end
call('HSET', ROLES, role, pack('>I8', now + ARGV[3]) .. candidate)
return 1
