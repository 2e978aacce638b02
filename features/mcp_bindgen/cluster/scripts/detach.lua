local s = stream(ARGV[4])
if s and s.k == ARGV[5] then
  s.r, s.k, s.g = nil, nil, tonumber(ARGV[6])
  put(ARGV[4], s)
end
