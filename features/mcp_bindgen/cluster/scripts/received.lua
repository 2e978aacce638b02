local box, q = P .. 'm:' .. me, P .. 'q:' .. me
repeat
  local some = call('XRANGE', box, '-', ARGV[4], 'COUNT', 100)
  for _, message in ipairs(some) do
    local fields = {}
    for i = 1, #message[2], 2 do fields[message[2][i]] = message[2][i + 1] end
    local bytes = whole(fields.bytes or '') or 0
    if increase(q, fields.who or '', 0 - bytes) <= 0 then call('HDEL', q, fields.who or '') end
    call('XDEL', box, message[1])
  end
until #some == 0
