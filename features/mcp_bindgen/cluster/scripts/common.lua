-- Lua scripts of the Redis store. Redis runs each script as a whole, so two workers cannot interleave.
--
-- Arguments of every script: the key prefix, the name of the calling worker, the key of a session, then its own.
--
-- Keys:
--     `s:SESSION`: hash of a session. `w:EPOCH` names the worker of an epoch, `s:NAME` holds the state of a stream.
--     `e:SESSION`: stream of the events of all streams of a session.
--     `a:ACCOUNT`: bytes that the account of a principal is charged for each session (record, streams, event data).
--     `f:ACCOUNT`: time of the oldest event of each session, in milliseconds.
--     `counted_bytes`: counted bytes of each account, and of all accounts as `*`.
--     `due`: times at which to check whether a session has expired, so that its account is discharged.
--     `m:WORKER`, `q:WORKER`: messages for a worker, and the bytes of each account in them.
--     `o:WORKER`: streams that a worker must finish.
--     `workers`, `state`, `topic`, `keys`: ends of leases, counters, broadcasts, signing keys.
--     `proofs`, `provers`, `h:SUBSCRIPTION`: proofs of possession, their number for each owner, handed over subscriptions.
--
-- The state of a stream is a JSON object: `l` last number, `h` number of events held, `g` last number given to a reader,
-- `o` owner and `p` pending ids while it is open, `r` worker of the reader and `k` its token, `t` token of the last
-- addition. Unknown members are kept.
local STREAM = 256 -- bytes that must be free for a new stream besides the ids of its requests
local ENCLOSED = 64 * 1024 -- bytes of the largest event in a message for its reader; larger ones are read from Redis
local TOPIC = 8 * 1024 * 1024 -- bytes of the broadcasts that are kept; the oldest are dropped first
local DAY = 24 * 3600 * 1000 -- milliseconds after which keys without a session expire unless a worker renews them
local WORK = 500 -- events that one script evicts at most, so that it ends soon
local P, me, id = ARGV[1], ARGV[2], ARGV[3]
local S, L, COUNTED, DUE = P .. 's:' .. id, P .. 'e:' .. id, P .. 'counted_bytes', P .. 'due'
local MEMBERS = {l = 'number', h = 'number', g = 'number', p = 'string', o = 'string', r = 'string', k = 'string',
  t = 'string'}
local call = redis.call
local function now()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function whole(text) -- a number as these scripts write it; nil for anything else
  local n = tonumber(text)
  return n and n >= 0 and n < 2 ^ 53 and n == math.floor(n) and n
end
local function increase(key, field, n) -- a field that holds no number counts as 0
  local sum = redis.pcall('HINCRBY', key, field, n)
  if type(sum) == 'number' then return sum end
  call('HDEL', key, field)
  return call('HINCRBY', key, field, n)
end
local function expire(key, ttl) -- unless the key expires already
  if call('PTTL', key) == -1 then call('PEXPIRE', key, math.max(ttl, 1)) end
end
local function alive(worker)
  return worker and call('ZSCORE', P .. 'workers', worker)
end
local function each(prefix, visit) -- call a function with the rest of the name and the value of fields of the session
  local all = call('HGETALL', S)
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == prefix then visit(string.sub(all[i], 3), all[i + 1]) end
  end
end
local function account(key)
  return call('HGET', P .. 's:' .. (key or id), 'who') or ''
end
local function counted_bytes(who)
  return tonumber(call('ZSCORE', COUNTED, who) or 0)
end
local function charge(who, key, bytes)
  if bytes ~= 0 then
    increase(P .. 'a:' .. who, key, bytes)
    call('ZINCRBY', COUNTED, bytes, who)
    call('ZINCRBY', COUNTED, bytes, '*')
  end
end
local function discharge(who, key)
  local own = P .. 'a:' .. who
  charge(who, key, -(whole(call('HGET', own, key)) or 0))
  call('HDEL', own, key)
  call('ZREM', P .. 'f:' .. who, key)
  call('ZREM', DUE, who .. '|' .. key)
  if call('EXISTS', own) == 0 then
    call('ZINCRBY', COUNTED, -counted_bytes(who), '*')
    call('ZREM', COUNTED, who)
  end
end
local function schedule(who, key, ttl) -- check after a time whether a session has expired
  call('ZADD', DUE, now() + ttl, who .. '|' .. key)
  for _, one in ipairs({COUNTED, DUE, P .. 'a:' .. who, P .. 'f:' .. who}) do
    call('PEXPIRE', one, math.max(DAY, 3 * ttl))
  end
end
local function send(worker, kind, ...) -- a message to a worker; false if too many bytes of the account wait there
  local who, q, bytes = account(), P .. 'q:' .. worker, MESSAGE_BYTES
  for _, field in ipairs({...}) do bytes = bytes + #tostring(field) end
  if increase(q, who, bytes) > MESSAGES_OF_PRINCIPAL then
    increase(q, who, -bytes)
    return false
  end
  call('XADD', P .. 'm:' .. worker, '*', 'kind', kind, 'session', id, 'who', who, 'bytes', bytes, ...)
  expire(P .. 'm:' .. worker, DAY)
  expire(q, DAY)
  return true
end
local function send_others(epochs, ...) -- a message to the other workers of the session, or those of some epochs
  local message, seen, sent = {...}, {[me] = true}, 1
  each('w:', function(epoch, worker)
    if not seen[worker] and (not epochs or epochs[epoch]) then
      seen[worker] = true
      if alive(worker) and not send(worker, unpack(message)) then sent = 0 end
    end
  end)
  return sent
end
local function touch()
  local idle = whole(call('HGET', S, 'idle'))
  if idle then
    call('PEXPIRE', S, idle)
    call('PEXPIRE', L, idle)
  end
end
local function stream(name, key) -- the state of a stream; false if there is none that can be read
  local _, s = pcall(cjson.decode, call('HGET', P .. 's:' .. (key or id), 's:' .. name) or 'null')
  if type(s) ~= 'table' then return false end
  for member, kind in pairs(MEMBERS) do
    local value = s[member]
    if type(value) ~= kind and not (value == nil and kind == 'string') then return false end
    if kind == 'number' and not whole(value) then return false end
  end
  return s
end
local function any(name) -- the same; the listen stream exists as long as its session
  return stream(name) or (name == '0' and call('EXISTS', S) == 1 and {l = 0, h = 0, g = 0, p = '[]'})
end
local function put(name, s, key)
  key = key or id
  local hash, field, text = P .. 's:' .. key, 's:' .. name, ''
  local before = call('HSTRLEN', hash, field)
  if s.h == 0 and not s.p then
    call('HDEL', hash, field)
  else
    text = cjson.encode(s)
    call('HSET', hash, field, text)
  end
  charge(account(key), key, #text - before)
end
local function index(who, key) -- note the time of the oldest event of a session
  local first, order = call('XRANGE', P .. 'e:' .. key, '-', '+', 'COUNT', 1)[1], P .. 'f:' .. who
  if first then
    call('ZADD', order, string.match(first[1], '%d+'), key)
    expire(order, call('PTTL', P .. 'a:' .. who))
  else
    call('ZREM', order, key)
  end
end
local function drop(who, key) -- the oldest event of a session
  local hash, events = P .. 's:' .. key, P .. 'e:' .. key
  local entry = call('XRANGE', events, '-', '+', 'COUNT', 1)[1] or {'', {}}
  local fields, size = entry[2], whole(call('HGET', hash, 'size')) or 0 -- all bytes if a foreign program removed events
  if fields[2] and call('XDEL', events, entry[1]) == 1 then size = fields[5] == 'd' and #fields[6] or 0 end
  charge(who, key, -size)
  increase(hash, 'size', 0 - size)
  local s = fields[2] and stream(fields[2], key)
  if s then
    s.h = math.max(s.h - 1, 0)
    put(fields[2], s, key)
  end
end
local function evict(who) -- the oldest event of a principal; false if there is none
  local key = call('ZRANGE', P .. 'f:' .. who, 0, 0)[1]
  if key and call('EXISTS', P .. 's:' .. key) == 0 then
    discharge(who, key)
  elseif key then
    drop(who, key)
    index(who, key)
  end
  return key
end
local function room(who, bytes) -- evict events of this principal, or of the one with the most bytes
  local work, rank = WORK, 0
  while work > 0 do
    local own, all = counted_bytes(who) + bytes - SIZE_OF_PRINCIPAL, counted_bytes('*') + bytes - ALL_SIZE
    if own <= 0 and all <= 0 then return true end
    local most = own > 0 and who or call('ZREVRANGE', COUNTED, rank, rank)[1]
    if not most then return false end
    if most ~= '*' and evict(most) then
      work = work - 1
    elseif own > 0 then
      return false
    else
      rank, work = rank + 1, work - 0.25
    end
  end
  return false
end
local function shrink() -- drop the oldest events of the session beyond its limits
  local who, all = account(), call('XLEN', L)
  local count = all
  while count > 1 and (count > EVENTS or (whole(call('HGET', S, 'size')) or 0) > SIZE) do
    drop(who, id)
    count = count - 1
  end
  if count < all or not call('ZSCORE', P .. 'f:' .. who, id) then index(who, id) end
end
local function tell(name, s, number, data, over) -- the reader of a stream about an event
  if s.r and s.r ~= me and alive(s.r) then
    if #data > ENCLOSED then data = '' end
    send(s.r, 'event', 'stream', name, 'number', number, 'data', data, 'over', over and 1 or 0)
  end
end
local function add(name, s, number, data)
  s.l, s.h = number, s.h + 1
  call('XADD', L, '*', 's', name, 'n', number, 'd', data)
  expire(L, call('PTTL', S))
  increase(S, 'size', #data)
  charge(account(), id, #data)
  if s.r and alive(s.r) then s.g = number end
end
local function append(data, token) -- add an event to the listen stream
  local is_room = room(account(), #data)
  local s = any('0')
  add('0', s, s.l + 1, is_room and data or '')
  s.t = token or s.t
  tell('0', s, s.l, data, false)
  put('0', s)
  shrink()
  return s.l
end
local function finish(name, s)
  call('SREM', P .. 'o:' .. s.o, id .. '|' .. name)
  s.p, s.o = nil, nil
end
local function version() -- of the record of the session; false without a session
  local text = call('HGET', S, 'version')
  return text and (whole(text) or 0)
end
local function record(text, ready) -- store the record of the session; false if the principal has too many bytes
  local who, more = account(), #text - call('HSTRLEN', S, 'record')
  if more > 0 and not room(who, more) then return false end
  charge(who, id, more)
  call('HSET', S, 'record', text, 'ready', ready)
  increase(S, 'version', 1)
  touch()
  return true
end
local function forget(key)
  id, S = key, P .. 's:' .. key
  local who = account()
  each('s:', function(name)
    local s = stream(name)
    if s and s.o then call('SREM', P .. 'o:' .. s.o, id .. '|' .. name) end
  end)
  send_others(nil, 'end')
  call('DEL', S, P .. 'e:' .. id)
  discharge(who, id)
end
