-- Take back up to 200 tasks of a worker whose lease has run out.
-- KEYS 1 the worker's set of held tasks. ARGV 1 partition prefix, 2 worker.
-- Returns {how many were looked at, ready…}.
local worker = ARGV[2]
local refs = call('SRANDMEMBER', KEYS[1], 200)
for _, name in ipairs(refs) do
  local at = name:find('|', 1, true)
  local run, tid = run_of(name:sub(1, at - 1)), name:sub(at + 1)
  local task = task_of(run, tid)
  if task and task.s == 'leased' and task.w == worker then
    give_back(run, tid, task, true)
  else
    call('SREM', KEYS[1], name)
  end
end
if call('EXISTS', KEYS[1]) == 0 then call('SREM', P .. 'holders', worker) end
return { #refs, publish_ready() }
