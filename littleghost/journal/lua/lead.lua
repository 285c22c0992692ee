-- Take or keep the keeper's lead.
-- KEYS 1 lg:keeper. ARGV 1 '', 2 worker, 3 lease (ms). Returns 1 for the leader.
local leader = call('GET', KEYS[1])
if leader and leader ~= ARGV[2] then return 0 end
call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
