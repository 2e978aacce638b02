"""Lua scripts of the Redis store. Redis runs each script as a whole, so two workers cannot interleave.

Arguments of every script: the key prefix, the name of the calling worker, the key of a session, then its own.

Keys:
    `s:SESSION`: hash of a session. `w:EPOCH` names the worker of an epoch, `s:NAME` holds the state of a stream.
    `e:SESSION`: stream of the events of all streams of a session.
    `a:ACCOUNT`: bytes that the account of a principal is charged for each session (record, streams, event data).
    `f:ACCOUNT`: time of the oldest event of each session, in milliseconds.
    `counted_bytes`: counted bytes of each account, and of all accounts as `*`.
    `due`: times at which to check whether a session has expired, so that its account is discharged.
    `m:WORKER`, `q:WORKER`: messages for a worker, and the bytes of each account in them.
    `o:WORKER`: streams that a worker must finish.
    `workers`, `state`, `topic`, `keys`: ends of leases, counters, broadcasts, signing keys.
    `proofs`, `provers`, `h:SUBSCRIPTION`: proofs of possession, their number for each owner, handed over subscriptions.

The state of a stream is a JSON object: `l` last number, `h` number of events held, `g` last number given to a reader,
`o` owner and `p` pending ids while it is open, `r` worker of the reader and `k` its token, `t` token of the last
addition. Unknown members are kept.
"""

from __future__ import annotations

from mcp_bindgen.http.server.event_store.base import StoreLimits

SESSION_BYTES = 1024
"""Bytes that an account is charged for the keys and counters of a session."""

MESSAGE_BYTES = 256
"""Bytes that an account is charged for the keys and counters of a message for a worker."""

_COMMON = """
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
  local who, q, bytes = account(), P .. 'q:' .. worker, MESSAGE
  for _, field in ipairs({...}) do bytes = bytes + #tostring(field) end
  if increase(q, who, bytes) > MAILBOX then
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
    local own, all = counted_bytes(who) + bytes - OWN_BYTES, counted_bytes('*') + bytes - ALL_BYTES
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
  while count > 1 and (count > EVENTS or (whole(call('HGET', S, 'size')) or 0) > BYTES) do
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
"""

_BODIES = {
    "CREATE": """
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
if not room(who, SESSION) then return -2 end
local n = whole(call('HGET', P .. 'state', 'broadcast')) or 0
call('HSET', S, 'needs', ARGV[4], 'epoch', 0, 'version', 0, 'broadcast', n, 'w:0', me, 'idle', ARGV[5], 'who', who,
  'begun', now())
charge(who, id, SESSION)
schedule(who, id, tonumber(ARGV[5]))
touch()
return n
""",
    "UPDATE": """
local version_now = version()
if not version_now then return false end
if version_now ~= tonumber(ARGV[4]) then return {version_now, call('HGET', S, 'record')} end
return {record(ARGV[5], ARGV[6]) and version() or -1}
""",
    "OPEN": """
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
""",
    "ENTER": """
local version_now = version()
if not version_now then return false end
if ARGV[5] == '1' then touch() end
return {version_now, version_now ~= tonumber(ARGV[4]) and (call('HGET', S, 'record') or '') or nil}
""",
    "FORGET": "forget(id)",
    "WRITE": """
if call('EXISTS', S) == 0 then return 0 end
local name, over, pending, bytes, who = ARGV[4], ARGV[5] == '1', ARGV[6], 0, account()
for i = 8, #ARGV, 2 do bytes = bytes + #ARGV[i] end
local is_room = room(who, bytes)
local is_known = stream(name) or name == '0' or room(who, #pending + STREAM)
local s = stream(name)
if not s then
  s = {l = 0, h = 0, g = 0, p = pending}
  if name ~= '0' then
    if not alive(me) then return -2 end -- its requests would stay unanswered
    if not is_known then return -3 end
    s.o = me
    call('SADD', P .. 'o:' .. me, id .. '|' .. name)
    expire(P .. 'o:' .. me, DAY)
  end
elseif not s.p or (s.o and s.o ~= me) then
  return -1
end
for i = 7, #ARGV, 2 do
  local number = tonumber(ARGV[i])
  if number > s.l then
    add(name, s, number, is_room and ARGV[i + 1] or '')
    tell(name, s, number, ARGV[i + 1], over and i == #ARGV - 1)
  end
end
s.p = pending
if over then
  if #ARGV < 7 then tell(name, s, s.l, '', true) end
  if s.o then finish(name, s) else s.p = nil end
end
put(name, s)
shrink()
touch()
return 1
""",
    "ADD": """
local s = any('0')
if not s then return 0 end
if s.t == ARGV[4] then return s.l end
touch()
return append(ARGV[5], ARGV[4])
""",
    "TELL": """
local known, before, number, data = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local version_now, last = version(), call('HGET', S, 'broadcast')
if not version_now or not last then return {'gone'} end
last = whole(last) or before
if last >= number then return {'delivered'} end
if last < before then return {'missed', last} end
if version_now > known then return {'outdated', version_now, call('HGET', S, 'record') or ''} end
call('HSET', S, 'broadcast', number)
return {'delivered', data == '' and 0 or append(data)}
""",
    "READ": """
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
""",
    "ATTACH": """
local name, token, after, force = ARGV[4], ARGV[5], ARGV[6], ARGV[7] == '1'
local s = call('EXISTS', S) == 1 and any(name)
if not s then return false end
local before = s.l - s.h
local start = after == '' and math.max(s.g, before) or tonumber(after)
if start < before or start > s.l then return false end
local lease = s.r and s.k ~= token and not force and alive(s.r)
if lease and tonumber(lease) > now() then return {start, s.l, 0, tonumber(lease)} end
local reader = s.r or s.o
if reader and reader ~= me and alive(reader) then
  send(reader, 'hangup', 'stream', name, 'token', s.r and s.k or '')
end
if s.p then
  s.r, s.k, s.g = me, token, s.l
  put(name, s)
end
touch()
return {start, s.l, s.p and 0 or 1, 0}
""",
    "LOOK": """
local s = any(ARGV[4])
if not s then return false end
touch()
return {s.l - s.h, s.l, s.p and 0 or 1, s.r and alive(s.r) and 1 or 0}
""",
    "DETACH": """
local s = stream(ARGV[4])
if s and s.k == ARGV[5] then
  s.r, s.k, s.g = nil, nil, tonumber(ARGV[6])
  put(ARGV[4], s)
end
""",
    "ROUTE": """
local epochs = {}
for i = 5, #ARGV do epochs[ARGV[i]] = true end
return send_others(#ARGV > 4 and epochs, 'post', 'body', ARGV[4])
""",
    "HEARTBEAT": """
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
""",
    "UNFINISHED": """
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
""",
    "FAIL": """
local name, worker, data = ARGV[4], ARGV[5], ARGV[6]
if not room(account(), #data) then data = '' end
local s = stream(name)
if not s or not s.p or s.o ~= worker then return 0 end
add(name, s, s.l + 1, data)
if s.r == me then send(me, 'event', 'stream', name, 'number', s.l, 'data', data, 'over', 1) end
tell(name, s, s.l, data, true)
finish(name, s)
put(name, s)
shrink()
return 1
""",
    "REMOVE_WORKER": """
local owned = P .. 'o:' .. ARGV[4]
if call('SCARD', owned) == 0 then
  call('ZREM', P .. 'workers', ARGV[4])
  call('DEL', P .. 'm:' .. ARGV[4], P .. 'q:' .. ARGV[4], owned)
end
""",
    "RECEIVED": """
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
""",
    "PUBLISH": """
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
""",
    "HAND_OVER": """
local place = P .. 'h:' .. ARGV[4]
call('RPUSH', place, ARGV[5])
call('LTRIM', place, -1000, -1)
call('PEXPIRE', place, ARGV[6])
""",
    "TAKE_OVER": """
local last = whole(call('LPOP', P .. 'h:' .. ARGV[4]))
return last and last <= (whole(call('HGET', P .. 'state', 'broadcast')) or 0) and last
""",
    "KEYS": """
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
""",
    "CLAIM": """
local owner, lasts, own_most, most = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local proofs, owners, t, member = P .. 'proofs', P .. 'provers', now(), id .. '|' .. owner
for _, one in ipairs(call('ZRANGEBYSCORE', proofs, '-inf', t, 'LIMIT', 0, 1000)) do
  call('ZREM', proofs, one)
  local who = string.match(one, '|(.*)$') or ''
  if increase(owners, who, -1) <= 0 then call('HDEL', owners, who) end
end
if call('ZSCORE', proofs, member) then return 0 end
local own, count = whole(call('HGET', owners, owner)) or 0, call('ZCARD', proofs)
local above_fair_share = count >= most and own >= most / call('HLEN', owners)
if own >= own_most or above_fair_share or count >= 2 * most then return -1 end
call('ZADD', proofs, t + lasts, member)
increase(owners, owner, 1)
for _, key in ipairs({proofs, owners}) do
  if call('PTTL', key) < lasts + 1000 then call('PEXPIRE', key, lasts + 1000) end
end
return 1
""",
}


def scripts(limits: StoreLimits) -> dict[str, str]:
    """Return the whole text of each script by its name, for a store with these limits."""
    numbers = {
        "EVENTS": limits.events,
        "BYTES": limits.size,
        "OWN_BYTES": limits.size_of_principal,
        "ALL_BYTES": limits.all_size,
        "MAILBOX": limits.mail_of_principal,
        "SESSION": SESSION_BYTES,
        "MESSAGE": MESSAGE_BYTES,
    }
    head = f"local {', '.join(numbers)} = {', '.join(map(str, numbers.values()))}\n{_COMMON}"
    return {name: head + body for name, body in _BODIES.items()}
