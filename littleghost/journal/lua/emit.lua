-- Append live events of a task's current attempt; nothing when the attempt is not current.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 task id, 4 attempt, 5 worker, 6 a name of this
-- call: the same call sent again appends nothing more, 7… event JSON.
-- Returns 1; 0 when the task is no longer this worker's; why the run is being stopped if it is.
local run = run_of(ARGV[2])
local task = task_of(run, ARGV[3])
if not task or task.s ~= 'leased' or task.w ~= ARGV[5] or task.a ~= tonumber(ARGV[4]) then return 0 end
local stopped = get(run, 'stop')
if stopped then return stopped end
local last = newest_append(run, ARGV[3])
if call('GET', last) == ARGV[6] then return 1 end
for i = 7, #ARGV do live(run, ARGV[i]) end
call('SET', last, ARGV[6], 'EX', ANSWER_S)
return 1
