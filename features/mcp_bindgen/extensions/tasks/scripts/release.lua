if call('HGET', T, 'o') == ARGV[3] and call('ZSCORE', P .. 'open', id) then
  call('HSET', T, 'o', '')
  call('ZADD', P .. 'open', ARGV[4], id)
end
