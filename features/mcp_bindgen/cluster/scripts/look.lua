local s = any(ARGV[4])
if not s then return false end
touch()
return {s.l - s.h, s.l, s.p and 0 or 1, s.r and alive(s.r) and 1 or 0}
