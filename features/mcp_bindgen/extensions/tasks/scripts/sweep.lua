local removed = call('ZRANGEBYSCORE', P .. 'over', '-inf', now(), 'LIMIT', 0, ARGV[3])
for _, one in ipairs(removed) do
  local key = P .. 't:' .. one
  local found = call('HMGET', key, 'w', 'r')
  call('DEL', key)
  call('ZREM', P .. 'over', one)
  if found[1] then
    call('ZREM', P .. 'l:' .. found[1], one)
    count(found[1], 0, -1, -#found[2])
  end
end
return #removed
