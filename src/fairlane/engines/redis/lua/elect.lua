#!lua flags=allow-oom
-- ARGV: role, candidate, for how many microseconds.
local role, candidate = ARGV[1], ARGV[2]
local taken = call('HGET', ROLES, role)
if taken and sub(taken, 9) ~= candidate then
    -- A term more than twice as long as this one is of a clock that has gone back since.
    local left = read('>I8', taken) - now
    if left > 0 and left <= 2 * ARGV[3] then
        return 0
    end
end
call('HSET', ROLES, role, pack('>I8', now + ARGV[3]) .. candidate)
return 1
