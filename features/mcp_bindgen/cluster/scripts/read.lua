local name, after, room = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local found, size, from = {}, 0, '-'
repeat
  local some = call('XRANGE', L, from, '+', 'COUNT', 100)
  for _, entry in ipairs(some) do
    local number, data = whole(entry[2][4] or ''), entry[2][6] or ''
    if entry[2][2] == name and number and number > after then
      size = size + #data
      if size > room and size > #data then return found end
      table.insert(found, number)
      table.insert(found, data)
    end
    from = '(' .. entry[1]
  end
until #some < 100
return found
