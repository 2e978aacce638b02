local version_now = version()
if not version_now then return false end
if version_now ~= tonumber(ARGV[4]) then return {version_now, call('HGET', S, 'record')} end
return {record(ARGV[5], ARGV[6]) and version() or -1}
