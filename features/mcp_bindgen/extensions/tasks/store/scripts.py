"""The scripts that Redis runs as a whole: what two workers must not both do is decided in them.

All begin with `COMMON`. Arguments: the prefix of keys, and those of the script. A task is a hash: `r` its record, `v`
the version of it, `w` whose it is, `o` the worker that has its lease. `open` and `over` are sorted sets of ids: until
when tasks that run are leased, and when those that are over may go. `n:` holds counts, of a principal or of all, and
`l:` the tasks of a principal in their order.
"""

from __future__ import annotations

COMMON = """
local P, id = ARGV[1], ARGV[2]
local T = P .. 't:' .. id
local call = redis.call
local function now()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function held(name)
  local n = call('HMGET', P .. 'n:' .. name, 'open', 'kept', 'bytes')
  return {tonumber(n[1] or 0), tonumber(n[2] or 0), tonumber(n[3] or 0)}
end
local function count(who, open, kept, bytes)
  for _, name in ipairs({who, ''}) do
    local key = P .. 'n:' .. name
    call('HINCRBY', key, 'open', open)
    call('HINCRBY', key, 'bytes', bytes)
    if call('HINCRBY', key, 'kept', kept) <= 0 and name ~= '' then call('DEL', key) end
  end
end
"""

CREATE = """
local who, record = ARGV[3], ARGV[4]
local own, all = held(who), held('')
for i = 1, 3 do
  if own[i] >= tonumber(ARGV[4 + i]) or all[i] >= tonumber(ARGV[7 + i]) then
    return {own[1], own[2], own[3], all[1], all[2], all[3]}
  end
end
call('HSET', T, 'r', record, 'v', 1, 'w', who, 'o', '')
call('ZADD', P .. 'open', 0, id)
call('ZADD', P .. 'l:' .. who, call('HINCRBY', P .. 'n:', 'place', 1), id)
count(who, 1, 1, #record)
call('PUBLISH', P .. 'changed', id)
return false
"""

READ = """
return call('HGET', T, 'r')
"""

SWAP = """
local before, record, over, kept = tonumber(ARGV[3]), ARGV[4], ARGV[5] == '1', ARGV[6]
local found = call('HMGET', T, 'v', 'w', 'r')
if not found[1] or tonumber(found[1]) ~= before then return 0 end
call('HSET', T, 'r', record, 'v', before + 1)
count(found[2], over and -1 or 0, 0, #record - #found[3])
if over then
  call('ZREM', P .. 'open', id)
  call('ZADD', P .. 'over', kept, id)
  call('HSET', T, 'o', '')
end
call('PUBLISH', P .. 'changed', id)
return 1
"""

LEASE = """
local worker, t = ARGV[3], now()
local till = call('ZSCORE', P .. 'open', id)
if not till then return 0 end
local owner = call('HGET', T, 'o')
if owner ~= '' and owner ~= worker and tonumber(till) > t then return 0 end
call('HSET', T, 'o', worker)
call('ZADD', P .. 'open', t + ARGV[4], id)
return 1
"""

RELEASE = """
if call('HGET', T, 'o') == ARGV[3] and call('ZSCORE', P .. 'open', id) then
  call('HSET', T, 'o', '')
  call('ZADD', P .. 'open', ARGV[4], id)
end
"""

DUE = """
return call('ZRANGEBYSCORE', P .. 'open', '-inf', now(), 'LIMIT', 0, ARGV[3])
"""

PAGE = """
local who, after = ARGV[3], '-inf'
if id ~= '' then
  after = call('ZSCORE', P .. 'l:' .. who, id)
  if not after then return false end
  after = '(' .. after
end
local found = {}
for _, one in ipairs(call('ZRANGEBYSCORE', P .. 'l:' .. who, after, '+inf', 'LIMIT', 0, ARGV[4])) do
  table.insert(found, call('HGET', P .. 't:' .. one, 'r'))
end
return found
"""

SWEEP = """
local gone = call('ZRANGEBYSCORE', P .. 'over', '-inf', now(), 'LIMIT', 0, ARGV[3])
for _, one in ipairs(gone) do
  local key = P .. 't:' .. one
  local found = call('HMGET', key, 'w', 'r')
  call('DEL', key)
  call('ZREM', P .. 'over', one)
  if found[1] then
    call('ZREM', P .. 'l:' .. found[1], one)
    count(found[1], 0, -1, -#found[2])
  end
end
return #gone
"""
