-- Publish ready tasks again, or look at them again later; the interval doubles up to a minute.
-- KEYS 1 the partition's ready set. ARGV 1 partition prefix, then pairs: ref, '1' to publish.
-- Returns what was published.
for i = 2, #ARGV, 2 do
  local name = ARGV[i]
  local at = name:find('|', 1, true)
  local run, tid = run_of(name:sub(1, at - 1)), name:sub(at + 1)
  local task = task_of(run, tid)
  if task and task.s == 'ready' then
    task.n = math.min(task.n + 1, 10)
    call('ZADD', KEYS[1], NOW + math.min(GRACE_MS * 2 ^ task.n, 60000), name)
    if ARGV[i + 1] == '1' then
      task.at = NOW
      ready[#ready + 1] = { run = run, tid = tid, task = task, again = true }
    end
    save_task(run, tid, task)
  end
end
return publish_ready()
