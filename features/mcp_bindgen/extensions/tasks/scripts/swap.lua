local before, record, over, removable_at = tonumber(ARGV[3]), ARGV[4], ARGV[5] == '1', ARGV[6]
local found = call('HMGET', T, 'v', 'w', 'r')
if tonumber(found[1]) == before + 1 and found[3] == record then return 1 end -- sent twice
if not found[1] or tonumber(found[1]) ~= before then return 0 end
call('HSET', T, 'r', record, 'v', before + 1)
count(found[2], over and -1 or 0, 0, #record - #found[3])
if over then
  call('ZREM', P .. 'open', id)
  call('ZADD', P .. 'over', removable_at, id)
  call('HSET', T, 'o', '')
end
call('PUBLISH', P .. 'changed', id)
return 1
