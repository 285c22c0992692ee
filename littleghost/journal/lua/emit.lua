-- Append live events of a task's current attempt; nothing when the attempt is not current.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 task id, 4 attempt, 5 worker, 6… event JSON.
-- Returns 1, or 0 when the task is no longer this worker's or the run is being stopped.
local run = run_of(ARGV[2])
local task = task_of(run, ARGV[3])
if not task or task.s ~= 'leased' or task.w ~= ARGV[5] or task.a ~= tonumber(ARGV[4]) then return 0 end
if get(run, 'stop') then return 0 end
for i = 6, #ARGV do live(run, ARGV[i]) end
return 1
