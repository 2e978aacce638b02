local token, topic, state = P .. 'once:' .. ARGV[4], P .. 'topic', P .. 'state'
if not call('SET', token, 1, 'NX', 'PX', 60000) then return end
local n = (whole(call('HGET', state, 'broadcast')) or 0) + 1
local before = whole(call('HGET', state, 'broadcast:' .. ARGV[5])) or 0
local function append()
  return redis.pcall('XADD', topic, string.format('%.0f-0', n), 'revision', ARGV[5], 'method', ARGV[6], 'data', ARGV[7],
    'before', before)
end
if append().err then -- a foreign row has a later number
  local known = call('XINFO', 'STREAM', topic)
  for i = 1, #known, 2 do
    local last = known[i] == 'last-generated-id' and whole(string.match(known[i + 1], '%d+'))
    if last then n = last + 1 end
  end
  if append().err then -- no number is left: all workers begin anew
    call('DEL', topic)
    call('HSET', state, 'generation', ARGV[4], 'bytes', 0)
    append()
  end
end
call('HSET', state, 'broadcast', string.format('%.0f', n), 'broadcast:' .. ARGV[5], string.format('%.0f', n))
expire(topic, DAY)
local size = increase(state, 'bytes', #ARGV[7])
while call('XLEN', topic) > 1000 or (size > TOPIC and call('XLEN', topic) > 1) do
  local first = call('XRANGE', topic, '-', '+', 'COUNT', 1)[1]
  call('XDEL', topic, first[1])
  size = increase(state, 'bytes', 0 - (first[2][5] == 'data' and #first[2][6] or 0))
end
