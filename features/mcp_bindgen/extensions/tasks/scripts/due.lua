return call('ZRANGEBYSCORE', P .. 'open', '-inf', now(), 'LIMIT', 0, ARGV[3])
