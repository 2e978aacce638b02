local last = whole(call('LPOP', P .. 'h:' .. ARGV[4]))
return last and last <= (whole(call('HGET', P .. 'state', 'broadcast')) or 0) and last
