#!lua flags=allow-oom
-- ARGV: '1' when more may be claimed now, then pairs of a field of CONTROLS and its value.
for i = 2, #ARGV, 2 do
    later('HSET', CONTROLS, ARGV[i], ARGV[i + 1])
end
call('HINCRBY', META, 'catalogue', 1)
write()
if ARGV[1] == '1' then
    wake()
end
return 'set'
