local P, id = ARGV[1], ARGV[2]
local T = P .. 't:' .. id
local call = redis.call
local function now()
  local t = call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function usage(name)
  local n = call('HMGET', P .. 'n:' .. name, 'open', 'tasks', 'bytes')
  return {tonumber(n[1] or 0), tonumber(n[2] or 0), tonumber(n[3] or 0)}
end
local function count(principal, open, tasks, bytes)
  for _, name in ipairs({principal, ''}) do
    local key = P .. 'n:' .. name
    call('HINCRBY', key, 'open', open)
    call('HINCRBY', key, 'bytes', bytes)
    if call('HINCRBY', key, 'tasks', tasks) <= 0 and name ~= '' then call('DEL', key) end
  end
end
