"""Common parts of the scripts: streams, accounts of principals, and messages for workers.

Arguments: the prefix of keys, the worker, the key of a session, and those of the script.

The state of a stream is a JSON object in the hash of its session: `l` last number, `h` events held, `g` last number
given to a reader, `o` owner and `p` pending ids while it is not over, `r` the worker of the reader and `k` its token,
`t` the token of what was added last. Members that are not known stay.

Each principal has an account, named by `who`: `a:` holds the bytes that each session is charged for (its record, its
streams, the data of its events), `f:` the time of the oldest event of each, in milliseconds. `held` has the sums of all
accounts, and of everything as `*`; `due` says when to look whether a session has expired, so that it is charged no
longer. `m:` is the mailbox of a worker, and `q:` has the bytes in it by account.
"""

from __future__ import annotations

from mcp_bindgen.http.server.event_store.base import StoreLimits

SESSION_BYTES = 1024
"""The bytes that an account is charged for the keys and counters of a session."""

LETTER_BYTES = 256
"""The bytes that an account is charged for the keys and counters of a message for a worker."""

STREAM_BYTES = 256
"""The bytes that have to be free for a new stream besides the ids of its requests."""

ENCLOSED_BYTES = 64 * 1024
"""The bytes of the largest event that is enclosed in a message for its reader; larger ones are read from the stream."""

_NEWS_BYTES = 8 * 1024 * 1024  # of the broadcasts that are held; the oldest go first

_MAX_EVICTED_EVENTS = 500  # by one script, so that none takes long

_DAY = 24 * 3600 * 1000  # milliseconds for which keys of no session stay without workers

_COMMON = """
local P, me, id = ARGV[1], ARGV[2], ARGV[3]
local S, L, HELD, DUE = P .. 's:' .. id, P .. 'e:' .. id, P .. 'held', P .. 'due'
local call = redis.call
local function now()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function whole(text) -- a number as these scripts write it; nil for anything else
  local n = tonumber(text)
  return n and n >= 0 and n < 2 ^ 53 and n == math.floor(n) and n
end
local function increase(key, field, n) -- a field that is no number, because something else writes there, counts as 0
  local sum = redis.pcall('HINCRBY', key, field, n)
  if type(sum) == 'number' then return sum end
  call('HDEL', key, field)
  return call('HINCRBY', key, field, n)
end
local function lasts(key, ttl) -- nothing stays for ever
  if call('PTTL', key) == -1 then call('PEXPIRE', key, math.max(ttl, 1)) end
end
local function alive(worker)
  return worker and call('ZSCORE', P .. 'workers', worker)
end
local function account(key)
  return call('HGET', P .. 's:' .. (key or id), 'who') or ''
end
local function held(who)
  return tonumber(call('ZSCORE', HELD, who) or 0)
end
local function charge(who, key, bytes)
  if bytes ~= 0 then
    increase(P .. 'a:' .. who, key, bytes)
    call('ZINCRBY', HELD, bytes, who)
    call('ZINCRBY', HELD, bytes, '*')
  end
end
local function discharge(who, key)
  local own = P .. 'a:' .. who
  charge(who, key, -(whole(call('HGET', own, key)) or 0))
  call('HDEL', own, key)
  call('ZREM', P .. 'f:' .. who, key)
  call('ZREM', DUE, who .. '|' .. key)
  if call('EXISTS', own) == 0 then
    call('ZINCRBY', HELD, -held(who), '*')
    call('ZREM', HELD, who)
  end
end
local function look(who, key, ttl)
  call('ZADD', DUE, now() + ttl, who .. '|' .. key)
  for _, one in ipairs({HELD, DUE, P .. 'a:' .. who, P .. 'f:' .. who}) do
    call('PEXPIRE', one, math.max(DAY, 3 * ttl))
  end
end
local function mail(worker, kind, ...)
  local who, q, bytes = account(), P .. 'q:' .. worker, LETTER
  for _, field in ipairs({...}) do bytes = bytes + #tostring(field) end
  if increase(q, who, bytes) > MAILBOX then
    increase(q, who, -bytes)
    return false
  end
  call('XADD', P .. 'm:' .. worker, '*', 'kind', kind, 'session', id, 'who', who, 'bytes', bytes, ...)
  lasts(P .. 'm:' .. worker, DAY)
  lasts(q, DAY)
  return true
end
local function touch()
  local idle = whole(call('HGET', S, 'idle'))
  if idle then
    call('PEXPIRE', S, idle)
    call('PEXPIRE', L, idle)
  end
end
local function stream(name, key)
  local _, s = pcall(cjson.decode, call('HGET', P .. 's:' .. (key or id), 's:' .. name) or 'null')
  if type(s) ~= 'table' then return false end
  for _, member in ipairs({'l', 'h', 'g'}) do
    if type(s[member]) ~= 'number' or not whole(s[member]) then return false end
  end
  for _, member in ipairs({'p', 'o', 'r', 'k', 't'}) do
    if s[member] ~= nil and type(s[member]) ~= 'string' then return false end
  end
  return s
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
local function mark(who, key)
  local first, order = call('XRANGE', P .. 'e:' .. key, '-', '+', 'COUNT', 1)[1], P .. 'f:' .. who
  if first then
    call('ZADD', order, string.match(first[1], '%d+'), key)
    lasts(order, call('PTTL', P .. 'a:' .. who))
  else
    call('ZREM', order, key)
  end
end
local function drop(who, key, bytes, count, most, till) -- the oldest events of a session, until as much is gone
  local hash, events, ids, size, streams = P .. 's:' .. key, P .. 'e:' .. key, {}, 0, {}
  local some = call('XRANGE', events, '-', till, 'COUNT', count > 1 and most or 1)
  if #some == 0 then -- another program has removed them
    size = whole(call('HGET', hash, 'size')) or 0
  elseif #(some[1][2][6] or '') < bytes then
    some = call('XRANGE', events, '-', till, 'COUNT', most)
  end
  for _, entry in ipairs(some) do
    if size >= bytes and #ids >= count then break end
    local fields = entry[2]
    size = size + (fields[5] == 'd' and #fields[6] or 0)
    streams[fields[2]] = (streams[fields[2]] or 0) + 1
    table.insert(ids, entry[1])
  end
  if #ids > 0 then call('XDEL', events, unpack(ids)) end
  charge(who, key, -size)
  increase(hash, 'size', 0 - size)
  for name, gone in pairs(streams) do
    local s = stream(name, key)
    if s then
      s.h = math.max(s.h - gone, 0)
      put(name, s, key)
    end
  end
  return math.max(#ids, 1)
end
local function evict(who, bytes) -- the oldest events of a principal; returns how many, if there are any
  local oldest = call('ZRANGE', P .. 'f:' .. who, 0, 1, 'WITHSCORES')
  local key, gone = oldest[1], 1
  if not key then return nil end
  if call('EXISTS', P .. 's:' .. key) == 0 then
    discharge(who, key)
  else
    gone = drop(who, key, bytes, 1, 100, whole(oldest[4]) and oldest[4] or '+')
    mark(who, key)
  end
  return gone
end
local function room(who, bytes) -- evict events of this principal, or of the one with the most bytes
  local work, rank = WORK, 0
  while work > 0 do
    local own, all = held(who) + bytes - OWN_BYTES, held('*') + bytes - ALL_BYTES
    if own <= 0 and all <= 0 then return true end
    local most = own > 0 and who or call('ZREVRANGE', HELD, rank, rank)[1]
    if not most then return false end
    local gone = most ~= '*' and evict(most, own > 0 and own or all)
    if gone then
      work = work - gone
    elseif own > 0 then
      return false
    else
      rank, work = rank + 1, work - 0.25
    end
  end
  return false
end
local function shrink()
  local who, count, before = account(), call('XLEN', L)
  while count > 1 do
    local more, bytes = count - EVENTS, (whole(call('HGET', S, 'size')) or 0) - BYTES
    if more <= 0 and bytes <= 0 then break end
    drop(who, id, bytes, math.max(more, 1), math.min(count - 1, 100), '+')
    count, before = call('XLEN', L), count
  end
  if before or not call('ZSCORE', P .. 'f:' .. who, id) then mark(who, id) end
end
local function tell(name, s, number, data, over)
  if s.r and s.r ~= me and alive(s.r) then
    if #data > ENCLOSED then data = '' end
    mail(s.r, 'event', 'stream', name, 'number', number, 'data', data, 'over', over and 1 or 0)
  end
end
local function add(name, s, number, data)
  s.l, s.h = number, s.h + 1
  call('XADD', L, '*', 's', name, 'n', number, 'd', data)
  lasts(L, call('PTTL', S))
  increase(S, 'size', #data)
  charge(account(), id, #data)
  if s.r and alive(s.r) then s.g = number end
end
local function version() -- of the record of the session; false without a session
  local text = call('HGET', S, 'version')
  if text and not whole(text) then
    call('HSET', S, 'version', 0)
    return '0'
  end
  return text
end
local function standing()
  return stream('0') or {l = 0, h = 0, g = 0, p = '[]'}
end
local function append(data, token) -- an event to the stream that all workers write
  local is_room = room(account(), #data)
  local s = standing()
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
local function begin(who, format, idle, told)
  call('HSET', S, 'v', format, 'needs', format, 'life', 0, 'version', 0, 'told', told, 'w:0', me, 'idle', idle,
    'who', who, 'begun', now())
  charge(who, id, SESSION)
  look(who, id, idle)
  touch()
end
local function record(text, ready) -- store the record of the session; false where the principal holds too much
  local who, more = account(), #text - call('HSTRLEN', S, 'record')
  if more > 0 and not room(who, more) then return false end
  charge(who, id, more)
  call('HSET', S, 'record', text, 'ready', ready)
  increase(S, 'version', 1)
  touch()
  return true
end
local function forget(key)
  local hash, others = P .. 's:' .. key, {}
  local all = call('HGETALL', hash)
  local who = account(key)
  for i = 1, #all, 2 do
    local kind = string.sub(all[i], 1, 2)
    if kind == 'w:' and all[i + 1] ~= me then others[all[i + 1]] = true end
    if kind == 's:' then
      local s = stream(string.sub(all[i], 3), key)
      if s and s.o then call('SREM', P .. 'o:' .. s.o, key .. '|' .. string.sub(all[i], 3)) end
    end
  end
  id, S = key, hash
  for worker in pairs(others) do
    if alive(worker) then mail(worker, 'end') end
  end
  call('DEL', hash, P .. 'e:' .. key)
  discharge(who, key)
end
"""


def script(body: str, limits: StoreLimits) -> str:
    """Return the whole text of a script, for a store with these limits."""
    numbers = {
        "EVENTS": limits.events,
        "BYTES": limits.size,
        "OWN_BYTES": limits.size_of_principal,
        "ALL_BYTES": limits.all_size,
        "MAILBOX": limits.mail_of_principal,
        "SESSION": SESSION_BYTES,
        "LETTER": LETTER_BYTES,
        "STREAM": STREAM_BYTES,
        "ENCLOSED": ENCLOSED_BYTES,
        "NEWS": _NEWS_BYTES,
        "DAY": _DAY,
        "WORK": _MAX_EVICTED_EVENTS,
    }
    return f"local {', '.join(numbers)} = {', '.join(map(str, numbers.values()))}\n{_COMMON}{body}"
