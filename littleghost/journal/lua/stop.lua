-- Stop a run: nothing new starts, what runs is told, and the run ends when it has let go.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 cancel|deadline|force, 4 error JSON, 5 grace (ms).
-- Returns the run's status, or '' when there is no such run; with what became ready.
local run, why = run_of(ARGV[2]), ARGV[3]
local status = get(run, 'status')
if not status then
  for _, index in ipairs({ 'live', 'deadlines', 'stops' }) do call('ZREM', P .. index, run.id) end
  return { '' }
end
if is_over(status) then return { status } end
local before = get(run, 'stop')
if why == 'force' then
  if not before then return { status } end
  finish_stopped(run)
  return { get(run, 'status'), publish_ready() }
end
if before then return { status } end
call('HSET', run.key, 'stop', why, 'stop_error', ARGV[4], 'status', 'stopping')
for _, tid in ipairs(call('SMEMBERS', run.key .. ':l')) do tell(run, tid, task_of(run, tid), why) end
if leased_count(run) == 0 then
  finish_stopped(run)
else
  call('ZADD', P .. 'stops', NOW + tonumber(ARGV[5]), run.id)
  clear_anew(run)
end
return { get(run, 'status'), publish_ready() }
