local record = call('HGET', S, 'record')
if not record then return false end
if (whole(call('HGET', S, 'needs')) or 0) > tonumber(ARGV[4]) then return {-1} end
local epoch = increase(S, 'epoch', 1)
call('HSET', S, 'w:' .. epoch, me)
touch()
local found = {epoch, record, version() or 0, whole(call('HGET', S, 'broadcast')) or 0}
each('s:', function(name)
  local s = stream(name)
  if s and s.p then
    for _, value in ipairs({name, s.l, s.p}) do table.insert(found, value) end
  end
end)
return found
