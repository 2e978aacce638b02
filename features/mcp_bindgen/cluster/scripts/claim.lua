local owner, lasts, own_most, most = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local proofs, owners, t, member = P .. 'proofs', P .. 'provers', now(), id .. '|' .. owner
for _, one in ipairs(call('ZRANGEBYSCORE', proofs, '-inf', t, 'LIMIT', 0, 1000)) do
  call('ZREM', proofs, one)
  local who = string.match(one, '|(.*)$') or ''
  if increase(owners, who, -1) <= 0 then call('HDEL', owners, who) end
end
if call('ZSCORE', proofs, member) then return 0 end
local own, count = whole(call('HGET', owners, owner)) or 0, call('ZCARD', proofs)
local above_fair_share = count >= most and own >= most / call('HLEN', owners)
if own >= own_most or above_fair_share or count >= 2 * most then return -1 end
call('ZADD', proofs, t + lasts, member)
increase(owners, owner, 1)
for _, key in ipairs({proofs, owners}) do
  if call('PTTL', key) < lasts + 1000 then call('PEXPIRE', key, lasts + 1000) end
end
return 1
