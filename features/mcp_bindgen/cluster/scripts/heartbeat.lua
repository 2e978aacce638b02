local lease, generation, is_new = tonumber(ARGV[4]), ARGV[5], ARGV[6] == '1'
local t, state, workers = now(), P .. 'state', P .. 'workers'
call('HSETNX', state, 'generation', generation)
local last = tonumber(call('HGET', state, 'heartbeat') or t) or t
if t - last > lease / 2 then -- no worker could renew its lease, so none is dead
  for _, worker in ipairs(call('ZRANGE', workers, 0, -1)) do call('ZADD', workers, t + lease, worker) end
end
local known = call('ZSCORE', workers, me) and 1 or 0
if known == 1 or is_new then call('ZADD', workers, t + lease, me) end
call('HSET', state, 'heartbeat', t)
for _, key in ipairs({'state', 'workers', 'topic', 'keys', 'm:' .. me, 'q:' .. me, 'o:' .. me}) do
  call('PEXPIRE', P .. key, DAY)
end
for _, member in ipairs(call('ZRANGEBYSCORE', DUE, '-inf', t, 'LIMIT', 0, 1000)) do
  local who, key = string.match(member, '^(.*)|(.*)$')
  local left = call('PTTL', P .. 's:' .. (key or ''))
  if not key then
    call('ZREM', DUE, member)
  elseif left == -2 then
    discharge(who, key)
  else
    schedule(who, key, math.max(left, 1000))
  end
end
local dead = {}
for _, worker in ipairs(call('ZRANGEBYSCORE', workers, '-inf', t, 'LIMIT', 0, 1000)) do
  if string.find(worker, '^[%w_-]+$') then table.insert(dead, worker) else call('ZREM', workers, worker) end
end
return {known, call('HGET', state, 'generation'), whole(call('HGET', state, 'broadcast')) or 0, unpack(dead)}
