"""The scripts that Redis runs as a whole: what two workers must not both do is decided in them.

`_script_parts.script` puts in front of each what all have in common.
"""

from __future__ import annotations

CREATE = """
local who, most = ARGV[6], tonumber(ARGV[7])
local own = P .. 'a:' .. who
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
    local mine, hash = id, S
    forget(oldest)
    id, S = mine, hash
  end
end
if not room(who, SESSION) then return -2 end
local n = whole(call('HGET', P .. 'state', 'news')) or 0
begin(who, ARGV[4], ARGV[5], n)
return n
"""

SAVE = """
if call('EXISTS', S) == 0 then begin(ARGV[7], ARGV[4], ARGV[5], 0) end
return record(ARGV[6], 1) and 1 or 0
"""

UPDATE = """
local version = version()
if not version then return false end
if version ~= ARGV[4] then return {tonumber(version), call('HGET', S, 'record')} end
if not record(ARGV[5], ARGV[6]) then return {-1} end
return {tonumber(call('HGET', S, 'version'))}
"""

OPEN = """
local record = call('HGET', S, 'record')
if not record then return false end
if (whole(call('HGET', S, 'needs')) or 0) > tonumber(ARGV[4]) then return {-1} end
local life = increase(S, 'life', 1)
call('HSET', S, 'w:' .. life, me)
touch()
local found = {life, record, tonumber(version() or 0), whole(call('HGET', S, 'told')) or 0}
local all = call('HGETALL', S)
for i = 1, #all, 2 do
  if string.sub(all[i], 1, 2) == 's:' then
    local s = stream(string.sub(all[i], 3))
    if s and s.p then
      table.insert(found, string.sub(all[i], 3))
      table.insert(found, s.l)
      table.insert(found, s.p)
    end
  end
end
return found
"""

ENTER = """
local version = version()
if not version then return false end
if ARGV[5] == '1' then touch() end
if version == ARGV[4] then return {tonumber(version)} end
return {tonumber(version), call('HGET', S, 'record') or ''}
"""

CLOSE = """
call('HDEL', S, 'w:' .. ARGV[4])
"""

FORGET = """
forget(id)
"""

WRITE = """
if call('EXISTS', S) == 0 then return 0 end
local name, over, pending, bytes, who = ARGV[4], ARGV[5] == '1', ARGV[6], 0, account()
for i = 8, #ARGV, 2 do bytes = bytes + #ARGV[i] end
local is_room = room(who, bytes)
local is_known = stream(name) or name == '0' or room(who, #pending + STREAM)
local s = stream(name)
if not s then
  s = {l = 0, h = 0, g = 0, p = pending}
  if name ~= '0' then
    if not alive(me) then return -2 end -- nobody would ever answer what it begins
    if not is_known then return -3 end
    s.o = me
    call('SADD', P .. 'o:' .. me, id .. '|' .. name)
    lasts(P .. 'o:' .. me, DAY)
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
if over then
  if #ARGV < 7 then tell(name, s, s.l, '', true) end
  if s.o then finish(name, s) end
  s.p = nil
else
  s.p = pending
end
put(name, s)
shrink()
touch()
return 1
"""

ADD = """
if call('EXISTS', S) == 0 then return 0 end
local token = ARGV[4]
if standing().t == token then return standing().l end
touch()
return append(ARGV[5], token)
"""

TELL = """
local known, before, number, data = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local version, told = version(), call('HGET', S, 'told')
if not version or not told then return {-1} end
told = whole(told) or before
if told >= number then return {0} end
if told < before then return {-2, told} end
if tonumber(version) > tonumber(known) then return {-3, tonumber(version), call('HGET', S, 'record') or ''} end
call('HSET', S, 'told', number)
if data == '' then return {0} end
return {append(data)}
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
    local number, data = whole(entry[2][4] or ''), entry[2][6] or ''
    if entry[2][2] == name and number and number > after then
      size = size + #data
      if #found > 0 and (size > room or data == '' or number ~= found[#found - 1] + 1) then return found end
      if data ~= '' then
        table.insert(found, number)
        table.insert(found, data)
      end
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
local others, taken = {}, 1
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
  if worker ~= me and alive(worker) and not mail(worker, 'post', 'body', ARGV[4]) then taken = 0 end
end
return taken
"""

BEAT = """
local lease, generation, life = tonumber(ARGV[4]), ARGV[5], ARGV[6]
local t, state, workers = now(), P .. 'state', P .. 'workers'
call('HSETNX', state, 'generation', generation)
local last = tonumber(call('HGET', state, 'beat') or t) or t
if t - last > lease / 2 then -- nobody could renew a lease, so nobody is dead
  for _, worker in ipairs(call('ZRANGE', workers, 0, -1)) do call('ZADD', workers, t + lease, worker) end
end
local known = call('ZSCORE', workers, me) and 1 or 0
if known == 1 or life == 'new' then call('ZADD', workers, t + lease, me) end
call('HSET', state, 'beat', t)
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
    look(who, key, math.max(left, 1000))
  end
end
local dead = {}
for _, worker in ipairs(call('ZRANGEBYSCORE', workers, '-inf', t, 'LIMIT', 0, 1000)) do
  if string.find(worker, '^[%w_-]+$') then table.insert(dead, worker) else call('ZREM', workers, worker) end
end
return {known, call('HGET', state, 'generation'), whole(call('HGET', state, 'news')) or 0, unpack(dead)}
"""

UNFINISHED = """
local owned, found = P .. 'o:' .. ARGV[4], {}
for _, member in ipairs(call('SMEMBERS', owned)) do
  local key, name = string.match(member, '^([^|]*)|(.*)$')
  local s = key and stream(name, key)
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
local name, worker, data = ARGV[4], ARGV[5], ARGV[6]
if not room(account(), #data) then data = '' end
local s = stream(name)
if not s or not s.p or s.o ~= worker then return 0 end
add(name, s, s.l + 1, data)
if s.r == me then mail(me, 'event', 'stream', name, 'number', s.l, 'data', data, 'over', 1) end
tell(name, s, s.l, data, true)
finish(name, s)
put(name, s)
shrink()
return 1
"""

BURY = """
local owned = P .. 'o:' .. ARGV[4]
if call('SCARD', owned) == 0 then
  call('ZREM', P .. 'workers', ARGV[4])
  call('DEL', P .. 'm:' .. ARGV[4], P .. 'q:' .. ARGV[4], owned)
end
"""

RECEIVED = """
local box, q = P .. 'm:' .. me, P .. 'q:' .. me
repeat
  local some = call('XRANGE', box, '-', ARGV[4], 'COUNT', 100)
  for _, letter in ipairs(some) do
    local fields = {}
    for i = 1, #letter[2], 2 do fields[letter[2][i]] = letter[2][i + 1] end
    local bytes = whole(fields.bytes or '') or 0
    if increase(q, fields.who or '', 0 - bytes) <= 0 then call('HDEL', q, fields.who or '') end
    call('XDEL', box, letter[1])
  end
until #some == 0
"""

PUBLISH = """
local token, topic, state = P .. 'once:' .. ARGV[4], P .. 'topic', P .. 'state'
if not call('SET', token, 1, 'NX', 'PX', 60000) then return end
local n = (whole(call('HGET', state, 'news')) or 0) + 1
local before = whole(call('HGET', state, 'news:' .. ARGV[5])) or 0
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
  if append().err then -- none is left: all workers begin anew
    call('DEL', topic)
    call('HSET', state, 'generation', ARGV[4], 'bytes', 0)
    append()
  end
end
call('HSET', state, 'news', string.format('%.0f', n), 'news:' .. ARGV[5], string.format('%.0f', n))
lasts(topic, DAY)
local size = increase(state, 'bytes', #ARGV[7])
while call('XLEN', topic) > 1000 or (size > NEWS and call('XLEN', topic) > 1) do
  local first = call('XRANGE', topic, '-', '+', 'COUNT', 1)[1]
  call('XDEL', topic, first[1])
  size = increase(state, 'bytes', 0 - (first[2][5] == 'data' and #first[2][6] or 0))
end
"""

HAND_OVER = """
local place = P .. 'h:' .. ARGV[4]
call('RPUSH', place, ARGV[5])
call('LTRIM', place, -1000, -1)
call('PEXPIRE', place, ARGV[6])
"""

TAKE_OVER = """
local told = whole(call('LPOP', P .. 'h:' .. ARGV[4]))
return told and told <= (whole(call('HGET', P .. 'state', 'news')) or 0) and told
"""

KEYS = """
local fresh, every, lifetime, settle = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local t = now()
local HEX = '^' .. string.rep('%x', 64) .. '$'
local _, known = pcall(cjson.decode, call('GET', P .. 'keys') or '[]')
if type(known) ~= 'table' then known = {} end
for _, key in ipairs(known) do
  if type(key) ~= 'table' or type(key.born) ~= 'number' or not string.find(tostring(key.key), HEX) then
    known = {}
  end
end
local left = {}
for i, key in ipairs(known) do
  local replaced = known[i + 1] and known[i + 1].born + settle
  if not replaced or t < replaced + lifetime then table.insert(left, key) end
end
if #left == 0 or t - left[#left].born > every then table.insert(left, {born = t, key = fresh}) end
if #left ~= #known or #known == 0 or left[1].key ~= known[1].key then
  call('SET', P .. 'keys', cjson.encode(left), 'PX', DAY)
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


CLAIM = """
local owner, lasts, own_most, most = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local proofs, owners, t, member = P .. 'proofs', P .. 'provers', now(), id .. '|' .. owner
for _, one in ipairs(call('ZRANGEBYSCORE', proofs, '-inf', t, 'LIMIT', 0, 1000)) do
  call('ZREM', proofs, one)
  local who = string.match(one, '|(.*)$') or ''
  if increase(owners, who, -1) <= 0 then call('HDEL', owners, who) end
end
if call('ZSCORE', proofs, member) then return 0 end
local own, count = whole(call('HGET', owners, owner)) or 0, call('ZCARD', proofs)
local above_share = count >= most and own >= most / call('HLEN', owners)
if own >= own_most or above_share or count >= 2 * most then return -1 end
call('ZADD', proofs, t + lasts, member)
increase(owners, owner, 1)
for _, key in ipairs({proofs, owners}) do
  if call('PTTL', key) < lasts + 1000 then call('PEXPIRE', key, lasts + 1000) end
end
return 1
"""
