local name, token, after, force = ARGV[4], ARGV[5], ARGV[6], ARGV[7] == '1'
local s = call('EXISTS', S) == 1 and any(name)
if not s then return false end
local before = s.l - s.h
local start = after == '' and math.max(s.g, before) or tonumber(after)
if start < before or start > s.l then return false end
local lease = s.r and s.k ~= token and not force and alive(s.r)
local reader = s.r or s.o
if reader and reader ~= me and alive(reader) then
  send(reader, 'hangup', 'stream', name, 'token', s.r and s.k or '')
end
if lease and tonumber(lease) > now() then return {start, s.l, 0, tonumber(lease)} end
if s.p then
  s.r, s.k, s.g = me, token, s.l
  put(name, s)
end
touch()
return {start, s.l, s.p and 0 or 1, 0}
