-- Send a signal: the coordinator that waits for its name gets it, or the next one that will.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 signal JSON {n name, r record}, 4 name, 5 id or '',
-- 6 digest of name and value, 7 how many may wait.
-- Returns {'ok', ready…} | {'none'} | {'over', status} | {'differs'} | {'full'}; the same id and digest is 'ok'
-- again and changes nothing.
local run = run_of(ARGV[2])
local status = get(run, 'status')
if not status then return { 'none' } end
if ARGV[5] ~= '' then
  local known = call('HGET', run.tree, 'i:' .. ARGV[5])
  if known then return { known == ARGV[6] and 'ok' or 'differs', {} } end
end
if is_over(status) or status == 'stopping' then return { 'over', status } end
if call('LLEN', run.key .. ':g') >= tonumber(ARGV[7]) then return { 'full' } end
if ARGV[5] ~= '' then call('HSET', run.tree, 'i:' .. ARGV[5], ARGV[6]) end
call('RPUSH', run.key .. ':g', ARGV[3])
wake_for_signal(run, ARGV[4])
return { 'ok', publish_ready() }
