local version_now = version()
if not version_now then return false end
if ARGV[5] == '1' then touch() end
return {version_now, version_now ~= tonumber(ARGV[4]) and (call('HGET', S, 'record') or '') or nil}
