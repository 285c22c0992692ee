-- Take the sole right to work on a task.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 task id, 4 worker, 5 child process, 6 publish
-- time of the message (ms, '' when not from a message), 7 queue, 8 creation time of the run
-- as the caller remembers it, or '', 9 how many entries of the participant's list the caller has,
-- 10 a name of this claim: the same claim sent again gets the same answer.
-- Returns {'ok', now, lease…, ready} | {'gone'} | {'held'} | {'wait'} | {'version', its version}.
local run, tid, worker = run_of(ARGV[2]), ARGV[3], ARGV[4]
if ARGV[6] ~= '' then
  local seen = tonumber(call('HGET', P .. 'delivered', ARGV[7]) or 0)
  local at = math.min(tonumber(ARGV[6]), NOW)
  if at > seen then call('HSET', P .. 'delivered', ARGV[7], format('%.0f', at)) end
end
local task = task_of(run, tid)
local status, version, gone, stop = unpack(call('HMGET', run.key, 'status', 'v', 'gone', 'stop'))
if status and version ~= SCHEMA then return { 'version', version } end
if not task then return { 'gone' } end
if task.s == 'leased' then
  if task.w ~= worker or task.z ~= ARGV[10] then return { 'held' } end
  return { 'ok', format('%.0f', NOW), lease_answer(run, tid, task, ARGV[8], ARGV[9]) }
end
if task.s ~= 'ready' then return { 'wait' } end
-- It is still to be cleared away.
if stop or is_over(status) or (gone and is_gone(run, task.p)) then return { 'gone' } end
call('ZREM', P .. 'ready', ref(run, tid))
lease(run, tid, task, worker, ARGV[5], ARGV[10])
if task.g then widen(run, task.g) end
if status == 'queued' then
  call('HSET', run.key, 'status', 'running', 'started', format('%.0f', NOW))
end
return { 'ok', format('%.0f', NOW), lease_answer(run, tid, task, ARGV[8], ARGV[9]), publish_ready() }
