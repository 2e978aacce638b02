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
