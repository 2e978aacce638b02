local owned = P .. 'o:' .. ARGV[4]
if call('SCARD', owned) == 0 then
  call('ZREM', P .. 'workers', ARGV[4])
  call('DEL', P .. 'm:' .. ARGV[4], P .. 'q:' .. ARGV[4], owned)
end
