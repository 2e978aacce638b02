local place = P .. 'h:' .. ARGV[4]
call('RPUSH', place, ARGV[5])
call('LTRIM', place, -1000, -1)
call('PEXPIRE', place, ARGV[6])
