local worker, t = ARGV[3], now()
local until_ = call('ZSCORE', P .. 'open', id)
if not until_ then return 0 end
local current = call('HGET', T, 'o')
if current ~= '' and current ~= worker and tonumber(until_) > t then return 0 end
call('HSET', T, 'o', worker)
call('ZADD', P .. 'open', t + ARGV[4], id)
return 1
