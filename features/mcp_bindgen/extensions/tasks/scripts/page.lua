local principal, after = ARGV[3], '-inf'
if id ~= '' then
  after = call('ZSCORE', P .. 'l:' .. principal, id)
  if not after then return false end
  after = '(' .. after
end
local found = {}
for _, one in ipairs(call('ZRANGEBYSCORE', P .. 'l:' .. principal, after, '+inf', 'LIMIT', 0, ARGV[4])) do
  table.insert(found, call('HGET', P .. 't:' .. one, 'r'))
end
return found
