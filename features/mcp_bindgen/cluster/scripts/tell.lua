local known, before, number, data = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local version_now, last = version(), call('HGET', S, 'broadcast')
if not version_now or not last then return {'gone'} end
last = whole(last) or before
if last >= number then return {'delivered'} end
if last < before then return {'missed', last} end
if version_now > known then return {'outdated', version_now, call('HGET', S, 'record') or ''} end
call('HSET', S, 'broadcast', number)
return {'delivered', data == '' and 0 or append(data)}
