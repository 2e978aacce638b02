local n = whole(call('HGET', P .. 'state', 'broadcast')) or 0
if version() then return n end
local who, most = ARGV[6], tonumber(ARGV[7])
local own, mine = P .. 'a:' .. who, id
if most > 0 and call('HLEN', own) >= most then
  local oldest, since
  for _, key in ipairs(call('HKEYS', own)) do
    local found = call('HMGET', P .. 's:' .. key, 'ready', 'begun')
    if not found[2] then
      discharge(who, key)
    elseif found[1] ~= '1' and (not since or (whole(found[2]) or 0) < since) then
      oldest, since = key, whole(found[2]) or 0
    end
  end
  if call('HLEN', own) >= most then
    if not oldest then return -1 end
    forget(oldest)
    id, S = mine, P .. 's:' .. mine
  end
end
if not room(who, SESSION_BYTES) then return -2 end
call('HSET', S, 'needs', ARGV[4], 'epoch', 0, 'version', 0, 'broadcast', n, 'w:0', me, 'idle', ARGV[5], 'who', who,
  'begun', now())
charge(who, id, SESSION_BYTES)
schedule(who, id, tonumber(ARGV[5]))
touch()
return n
