-- Give one leased task back, because its worker stops or its child process died.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 task id, 4 worker, 5 attempt or '', 6 child
-- process or '', 7 '1' when the work may have been half done.
-- Returns {1, ready…}, or {0} when the task is not leased so.
local run, tid = run_of(ARGV[2]), ARGV[3]
local task = task_of(run, tid)
if not task or task.s ~= 'leased' or task.w ~= ARGV[4] then return { 0 } end
if ARGV[5] ~= '' and task.a ~= tonumber(ARGV[5]) then return { 0 } end
if ARGV[6] ~= '' and task.c ~= ARGV[6] then return { 0 } end
give_back(run, tid, task, ARGV[7] == '1')
return { 1, publish_ready() }
