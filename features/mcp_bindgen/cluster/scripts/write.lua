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
