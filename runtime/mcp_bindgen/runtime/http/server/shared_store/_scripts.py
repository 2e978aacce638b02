"""The scripts that Redis runs as a whole: what two workers must not both do is decided in them.

All begin with `_COMMON`. Arguments: the prefix of keys, the worker, the key of a session, and those of the script.

The state of a stream is a JSON object in the hash of its session: `l` last number, `h` events held, `g` last number
given to a reader, `o` owner and `p` pending ids while it is not over, `r` the worker of the reader and `k` its token,
`t` the token of what was added last. Members that are not known stay.
"""

from __future__ import annotations

_COMMON = """
local P, me, id = ARGV[1], ARGV[2], ARGV[3]
local S, L = P .. 's:' .. id, P .. 'e:' .. id
local call = redis.call
local function now()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function alive(worker)
  return worker and call('ZSCORE', P .. 'workers', worker)
end
local function mail(worker, kind, ...)
  call('XADD', P .. 'm:' .. worker, 'MAXLEN', '~', 20000, '*', 'kind', kind, 'session', id, ...)
end
local function touch()
  local idle = call('HGET', S, 'idle')
  if idle then
    call('PEXPIRE', S, idle)
    call('PEXPIRE', L, idle)
  end
end
local function stream(name)
  local text = call('HGET', S, 's:' .. name)
  return text and cjson.decode(text)
end
local function put(name, s)
  if s.h == 0 and not s.p then
    call('HDEL', S, 's:' .. name)
  else
    call('HSET', S, 's:' .. name, cjson.encode(s))
  end
end
local function shrink(name, s, most, room)
  local count = call('XLEN', L)
  local size = tonumber(call('HGET', S, 'size') or 0)
  while count > 1 and (count > most or size > room) do
    local first = call('XRANGE', L, '-', '+', 'COUNT', 1)[1]
    call('XDEL', L, first[1])
    local whose = first[2][2]
    count, size = count - 1, size - #first[2][6]
    local other = whose == name and s or stream(whose)
    if other then
      other.h = other.h - 1
      if whose ~= name then put(whose, other) end
    end
  end
  call('HSET', S, 'size', size)
end
local function tell(name, s, number, data, over)
  if s.r and s.r ~= me and alive(s.r) then
    mail(s.r, 'event', 'stream', name, 'number', number, 'data', data, 'over', over and 1 or 0)
  end
end
local function add(name, s, number, data)
  s.l, s.h = number, s.h + 1
  call('XADD', L, '*', 's', name, 'n', number, 'd', data)
  if call('PTTL', L) == -1 then call('PEXPIRE', L, math.max(call('PTTL', S), 1)) end
  call('HINCRBY', S, 'size', #data)
  if s.r and alive(s.r) then s.g = number end
end
local function standing()
  return stream('0') or {l = 0, h = 0, g = 0, p = '[]'}
end
local function finish(name, s)
  call('SREM', P .. 'o:' .. s.o, id .. '|' .. name)
  s.p, s.o = nil, nil
end
"""

CREATE = """
local n = call('HGET', P .. 'state', 'news') or 0
call('HSET', S, 'v', ARGV[4], 'needs', ARGV[4], 'life', 0, 'version', 0, 'told', n, 'w:0', me, 'idle', ARGV[5])
touch()
return tonumber(n)
"""

SAVE = """
if call('EXISTS', S) == 0 then
  call('HSET', S, 'v', ARGV[4], 'needs', ARGV[4], 'life', 0, 'version', 0, 'told', 0, 'w:0', me, 'idle', ARGV[5])
end
call('HSET', S, 'record', ARGV[6])
call('HINCRBY', S, 'version', 1)
touch()
"""

UPDATE = """
local version = call('HGET', S, 'version')
if not version then return false end
if version ~= ARGV[4] then return {tonumber(version), call('HGET', S, 'record')} end
call('HSET', S, 'record', ARGV[5])
touch()
return {call('HINCRBY', S, 'version', 1)}
"""

OPEN = """
local record = call('HGET', S, 'record')
if not record then return false end
if tonumber(call('HGET', S, 'needs')) > tonumber(ARGV[4]) then return {-1} end
local life = call('HINCRBY', S, 'life', 1)
call('HSET', S, 'w:' .. life, me)
touch()
local found = {life, record, tonumber(call('HGET', S, 'version')), tonumber(call('HGET', S, 'told'))}
local all = call('HGETALL', S)
for i = 1, #all, 2 do
  if string.sub(all[i], 1, 2) == 's:' then
    local s = cjson.decode(all[i + 1])
    if s.p then
      table.insert(found, string.sub(all[i], 3))
      table.insert(found, s.l)
      table.insert(found, s.p)
    end
  end
end
return found
"""

ENTER = """
local version = call('HGET', S, 'version')
if not version then return false end
if ARGV[5] == '1' then touch() end
if version == ARGV[4] then return {tonumber(version)} end
return {tonumber(version), call('HGET', S, 'record') or ''}
"""

CLOSE = """
call('HDEL', S, 'w:' .. ARGV[4])
"""

FORGET = """
local all = call('HGETALL', S)
local others = {}
for i = 1, #all, 2 do
  local kind = string.sub(all[i], 1, 2)
  if kind == 'w:' and all[i + 1] ~= me then others[all[i + 1]] = true end
  if kind == 's:' then
    local s = cjson.decode(all[i + 1])
    if s.o then call('SREM', P .. 'o:' .. s.o, id .. '|' .. string.sub(all[i], 3)) end
  end
end
for worker in pairs(others) do
  if alive(worker) then mail(worker, 'end') end
end
call('DEL', S, L)
"""

WRITE = """
if call('EXISTS', S) == 0 then return 0 end
local name, most, room, over, pending = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1', ARGV[8]
local s = stream(name)
if not s then
  s = {l = 0, h = 0, g = 0, p = pending}
  if name ~= '0' then
    if not alive(me) then return -2 end -- nobody would ever answer what it begins
    s.o = me
    call('SADD', P .. 'o:' .. me, id .. '|' .. name)
  end
elseif not s.p or (s.o and s.o ~= me) then
  return -1
end
for i = 9, #ARGV, 2 do
  local number = tonumber(ARGV[i])
  if number > s.l then
    add(name, s, number, ARGV[i + 1])
    tell(name, s, number, ARGV[i + 1], over and i == #ARGV - 1)
  end
end
if over then
  if #ARGV < 9 then tell(name, s, s.l, '', true) end
  if s.o then finish(name, s) end
  s.p = nil
else
  s.p = pending
end
shrink(name, s, most, room)
put(name, s)
touch()
return 1
"""

ADD = """
if call('EXISTS', S) == 0 then return 0 end
local name, most, room, token, data = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], ARGV[8]
local s = standing()
if s.t == token then return s.l end
add(name, s, s.l + 1, data)
s.t = token
tell(name, s, s.l, data, false)
shrink(name, s, most, room)
put(name, s)
touch()
return s.l
"""

TELL = """
local most, room, version, before, number, data = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[7]),
  tonumber(ARGV[8]), ARGV[9]
local told = tonumber(call('HGET', S, 'told') or -1)
if told < 0 then return {-1} end
if told >= number then return {0} end
if told < before then return {-2, told} end
if call('HGET', S, 'version') ~= version then
  return {-3, tonumber(call('HGET', S, 'version')), call('HGET', S, 'record') or ''}
end
call('HSET', S, 'told', number)
if data == '' then return {0} end
local s = standing()
add('0', s, s.l + 1, data)
tell('0', s, s.l, data, false)
shrink('0', s, most, room)
put('0', s)
return {s.l}
"""

SPAN = """
local s = stream(ARGV[4])
if not s then return false end
return {s.l + 1 - s.h, s.l}
"""

READ = """
local name, after, room = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local found, size, from = {}, 0, '-'
while true do
  local some = call('XRANGE', L, from, '+', 'COUNT', 100)
  for _, entry in ipairs(some) do
    local number = tonumber(entry[2][4])
    if entry[2][2] == name and number > after then
      size = size + #entry[2][6]
      if #found > 0 and size > room then return found end
      table.insert(found, number)
      table.insert(found, entry[2][6])
    end
    from = '(' .. entry[1]
  end
  if #some < 100 then return found end
end
"""

ATTACH = """
local name, token, after, force = ARGV[4], ARGV[5], ARGV[6], ARGV[7] == '1'
if call('EXISTS', S) == 0 then return false end
local s = stream(name) or (name == '0' and standing())
if not s then return false end
local before = s.l - s.h
local start = after == '' and math.max(s.g, before) or tonumber(after)
if start < before or start > s.l then return false end
local lease = s.r and s.k ~= token and not force and alive(s.r)
if lease and tonumber(lease) > now() then return {start, s.l, 0, tonumber(lease)} end
if s.r and s.r ~= me and alive(s.r) then mail(s.r, 'hangup', 'stream', name, 'token', s.k) end
if not s.r and s.o and s.o ~= me and alive(s.o) then mail(s.o, 'hangup', 'stream', name, 'token', '') end
if s.p then
  s.r, s.k, s.g = me, token, s.l
  put(name, s)
end
touch()
return {start, s.l, s.p and 0 or 1, 0}
"""

LOOK = """
local s = stream(ARGV[4]) or (ARGV[4] == '0' and call('EXISTS', S) == 1 and standing())
if not s then return false end
touch()
return {s.l, s.p and 0 or 1, s.r and alive(s.r) and 1 or 0}
"""

DETACH = """
local s = stream(ARGV[4])
if s and s.k == ARGV[5] then
  s.r, s.k, s.g = nil, nil, tonumber(ARGV[6])
  put(ARGV[4], s)
end
"""

ROUTE = """
local others = {}
if #ARGV > 4 then
  for i = 5, #ARGV do
    local worker = call('HGET', S, 'w:' .. ARGV[i])
    if worker then others[worker] = true end
  end
else
  local all = call('HGETALL', S)
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 2) == 'w:' then others[all[i + 1]] = true end
  end
end
for worker in pairs(others) do
  if worker ~= me and alive(worker) then mail(worker, 'post', 'body', ARGV[4]) end
end
"""

BEAT = """
local lease, generation, life, long = tonumber(ARGV[4]), ARGV[5], ARGV[6], ARGV[7]
local t, state, workers = now(), P .. 'state', P .. 'workers'
call('HSETNX', state, 'generation', generation)
local last = tonumber(call('HGET', state, 'beat') or t)
if t - last > lease / 2 then -- nobody could renew a lease, so nobody is dead
  for _, worker in ipairs(call('ZRANGE', workers, 0, -1)) do call('ZADD', workers, t + lease, worker) end
end
local known = call('ZSCORE', workers, me) and 1 or 0
if known == 1 or life == 'new' then call('ZADD', workers, t + lease, me) end
call('HSET', state, 'beat', t)
for _, key in ipairs({state, workers, P .. 'topic', P .. 'keys'}) do call('PEXPIRE', key, long) end
call('PEXPIRE', P .. 'm:' .. me, long)
call('PEXPIRE', P .. 'o:' .. me, long)
local dead = call('ZRANGEBYSCORE', workers, '-inf', t)
return {known, call('HGET', state, 'generation'), tonumber(call('HGET', state, 'news') or 0), unpack(dead)}
"""

UNFINISHED = """
local owned, found = P .. 'o:' .. ARGV[4], {}
for _, member in ipairs(call('SMEMBERS', owned)) do
  local cut = string.find(member, '|', 1, true)
  local key, name = string.sub(member, 1, cut - 1), string.sub(member, cut + 1)
  local text = call('HGET', P .. 's:' .. key, 's:' .. name)
  local s = text and cjson.decode(text)
  if s and s.p and s.o == ARGV[4] then
    table.insert(found, key)
    table.insert(found, name)
    table.insert(found, s.p)
  else
    call('SREM', owned, member)
  end
end
return found
"""

FAIL = """
local name, worker, data, most, room = ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7]), tonumber(ARGV[8])
local s = stream(name)
if not s or not s.p or s.o ~= worker then return 0 end
add(name, s, s.l + 1, data)
if s.r == me then mail(me, 'event', 'stream', name, 'number', s.l, 'data', data, 'over', 1) end
tell(name, s, s.l, data, true)
finish(name, s)
shrink(name, s, most, room)
put(name, s)
return 1
"""

BURY = """
local owned = P .. 'o:' .. ARGV[4]
if call('SCARD', owned) == 0 then
  call('ZREM', P .. 'workers', ARGV[4])
  call('DEL', P .. 'm:' .. ARGV[4], owned)
end
"""

PUBLISH = """
local token = P .. 'once:' .. ARGV[4]
if not call('SET', token, 1, 'NX', 'PX', 60000) then return end
local n = call('HINCRBY', P .. 'state', 'news', 1)
local before = call('HGET', P .. 'state', 'news:' .. ARGV[5]) or 0
call('HSET', P .. 'state', 'news:' .. ARGV[5], n)
call('XADD', P .. 'topic', 'MAXLEN', 1000, n .. '-0', 'revision', ARGV[5], 'method', ARGV[6], 'data', ARGV[7],
  'before', before)
"""

KEYS = """
local fresh, every, lifetime, settle = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local t = now()
local known = cjson.decode(call('GET', P .. 'keys') or '[]')
local left = {}
for i, key in ipairs(known) do
  local replaced = known[i + 1] and known[i + 1].born + settle
  if not replaced or t < replaced + lifetime then table.insert(left, key) end
end
if #left == 0 or t - left[#left].born > every then table.insert(left, {born = t, key = fresh}) end
if #left ~= #known or #known == 0 or left[1].key ~= known[1].key then
  call('SET', P .. 'keys', cjson.encode(left), 'PX', ARGV[8])
end
local found = {}
local use = 1
for i, key in ipairs(left) do
  if t - key.born > settle then use = i end
end
table.insert(found, left[use].key)
for i, key in ipairs(left) do
  if i ~= use then table.insert(found, key.key) end
end
return found
"""


def script(body: str) -> str:
    """Return the whole text of a script."""
    return _COMMON + body
