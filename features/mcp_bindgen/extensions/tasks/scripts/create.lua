if call('EXISTS', T) == 1 then return false end -- sent twice: the connection broke off before the answer
local principal, record = ARGV[3], ARGV[4]
local own, all = usage(principal), usage('')
for i = 1, 3 do
  if own[i] >= tonumber(ARGV[4 + i]) or all[i] >= tonumber(ARGV[7 + i]) then return {own, all} end
end
call('HSET', T, 'r', record, 'v', 1, 'w', principal, 'o', '')
call('ZADD', P .. 'open', 0, id)
call('ZADD', P .. 'l:' .. principal, call('HINCRBY', P .. 'n:', 'place', 1), id)
count(principal, 1, 1, #record)
return false
