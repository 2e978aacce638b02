local owned, found = P .. 'o:' .. ARGV[4], {}
for _, member in ipairs(call('SMEMBERS', owned)) do
  local key, name = string.match(member, '^([^|]*)|(.*)$')
  local s = key and stream(name, key)
  if s and s.p and s.o == ARGV[4] then
    for _, value in ipairs({key, name, s.p}) do table.insert(found, value) end
  else
    call('SREM', owned, member)
  end
end
return found
