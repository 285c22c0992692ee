-- Answer for a call that a person must allow.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 task id, 4 answer JSON, 5 payload with other input, '' to
-- keep it, '-' to only repeat an answer that was given.
-- Returns {'ok', ready…} | {'answered', the answer that stands} | {'none'}; the same answer is 'ok' again.
local run, tid = run_of(ARGV[2]), ARGV[3]
local before = call('HGET', run.tree, 'a:' .. tid)
if before then
  if before == ARGV[4] then return { 'ok', {} } end
  return { 'answered', before }
end
local task = task_of(run, tid)
if not task or not task.ap or task.s ~= 'wait' or not may_begin(run, task.p) or ARGV[5] == '-' then return { 'none' } end
if NOW >= task.ap then
  expire_question(run, tid, task)
  return { 'answered', task.an, publish_ready() }
end
if ARGV[5] ~= '' then call('HSET', run.open, 'd:' .. tid, ARGV[5]) end
answer_for(run, tid, task, ARGV[4])
return { 'ok', publish_ready() }
