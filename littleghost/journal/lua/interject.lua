-- Put a message into the inbox of the one agent that is at work.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 entry JSON {id, key, r record}, 4 id, 5 digest, 6 how many
-- messages a run takes, 7 how many agents were found at work, 8 that one.
-- Returns {'ok', participant, number of the newest event} | {'none'} | {'over', status} | {'differs'} | {'full'} |
-- {'agents', how many are at work} | {'moved'} when that one has ended meanwhile; the same id and digest gets the first answer.
local run = run_of(ARGV[2])
local status = get(run, 'status')
if not status then return { 'none' } end
local known = call('HGET', run.tree, 'i:' .. ARGV[4])
if known then
  local at, to, number = known:match('^(%S+) (%S+) (%S+)$')
  if at ~= ARGV[5] then return { 'differs' } end
  return { 'ok', to, number }
end
if is_over(status) or status == 'stopping' then return { 'over', status } end
if ARGV[7] ~= '1' then return { 'agents', ARGV[7] } end
local pid = ARGV[8]
if call('HEXISTS', run.open, 'x:' .. pid) == 0 or is_gone(run, pid) then return { 'moved' } end
local count = call('HINCRBY', run.key, 'ij', 1)
if count > tonumber(ARGV[6]) then
  call('HINCRBY', run.key, 'ij', -1)
  return { 'full' }
end
local number = get(run, 'ev')
call('HSET', run.tree, 'i:' .. ARGV[4], ARGV[5] .. ' ' .. pid .. ' ' .. number)
post(run, pid, ARGV[3])
return { 'ok', pid, number }
