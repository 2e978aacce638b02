local fresh, every, lifetime, settle = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local t, keys = now(), P .. 'keys'
if call('TYPE', keys).ok ~= 'zset' then call('DEL', keys) end
for _, key in ipairs(call('ZRANGE', keys, 0, -1)) do
  if not string.find(key, '^' .. string.rep('%x', 64) .. '$') then call('ZREM', keys, key) end
end
local function newest(till)
  return call('ZREVRANGEBYSCORE', keys, till, 0, 'WITHSCORES', 'LIMIT', 0, 1)
end
local last, settled = newest(t)[2], newest(t - settle - lifetime)[2]
if not last or t - last > every then call('ZADD', keys, t, fresh) end
if settled then call('ZREMRANGEBYSCORE', keys, '-inf', '(' .. settled) end -- their successor is in use for long enough
call('PEXPIRE', keys, DAY)
return {newest(t - settle)[1] or call('ZRANGE', keys, 0, 0)[1], unpack(call('ZRANGE', keys, 0, -1))}
