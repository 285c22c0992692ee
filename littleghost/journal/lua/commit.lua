-- Record a task's outcome once, and make ready what follows from it.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 task id, 4 attempt, 5 worker, 6 child process,
-- 7 creation time of the run, 8 how many entries of the list the caller has, 9 plan JSON, 10…
-- payloads.
-- plan: l live events, ld (an append that may have added the first n of them, n), e events, m messages, st state, r result, u usage, o state operations, x text,
--   p participants, j joins, t tasks, k participants to cancel, again (delay ms, header changes),
--   park (the participant the task waits for, '' when somebody else records its result), w (wake the
--   coordinator, ms from now; 0 is at once), sg (the signal the coordinator waits for), b posts (participant, record),
--   an results of waiting calls (task, record), n working state of others (participant, key, value),
--   ks conversations to keep (key, facts, records, in the run), kd to forget (key, in the run),
--   done (complete the participant), f (fail it: outcome, error, whether the task was not begun), say (what a
--   composite's session gets), or (something else can be committed when a message has come), next
--   (queues served here), cut (turns whose live text stays), up (how many entries of the parent's
--   list the caller has), def definitions (field, payload index).
-- Returns {'ok', ready, lease or false, now, length of the list after an append} | {'stopped', ready} |
-- {'stale'}; the same commit gets the same answer. {'mail'} when an agent would end though a message for it
-- has come: nothing is changed then.
local run, tid, worker = run_of(ARGV[2]), ARGV[3], ARGV[5]
local token = tid .. ':' .. ARGV[4] .. ':' .. worker
local answers = P .. 'answer:' .. run.id .. ':' .. token
local task = task_of(run, tid)
if not task or task.s ~= 'leased' or task.w ~= worker or task.a ~= tonumber(ARGV[4]) then
  local before = call('GET', answers)
  if not before then return { 'stale' } end
  local told, leased, attempt = unpack(cmsgpack.unpack(before))
  if told == 'stopped' then return { told, leased } end
  local held = leased and task_of(run, leased)
  if held and held.s == 'leased' and held.w == worker and held.a == attempt then
    return { 'ok', told, lease_answer(run, leased, held, '', 0), format('%.0f', NOW), -1 }
  end
  return { 'ok', told, false, format('%.0f', NOW), -1 }
end
local plan = cjson.decode(ARGV[9])
local part, head = participant_of(run, task.p)
local stopped, gone = unpack(call('HMGET', run.key, 'stop', 'gone'))
if plan.done and plan['or'] and not stopped and call('HEXISTS', run.key .. ':b', task.p) == 1 then
  return { 'mail' }
end
-- What others than the root and final participants say is no answer to the run's caller.
local text = plan.x and (task.p == '0' or part.fin) and ARGV[plan.x]

add_usage(run, task.p, plan.u or {})
unlease(run, tid, task)

if stopped then
  if plan.r then
    -- The call was made: its result and what it changed are kept, though nothing follows from it.
    call('HSET', run.key .. ':r', tid, ARGV[plan.r])
    for _, o in ipairs(plan.o or {}) do change_state(part.s, o[1], o[2], ARGV[o[3]]) end
  else
    bury(run, tid, task, false)
  end
  forget_task(run, tid)
  if text then call('HSET', run.key, 'said', text) end
  if leased_count(run) == 0 then finish_stopped(run) end
  -- Of its session, the next run.
  local told = publish_ready()
  call('SET', answers, cmsgpack.pack({ 'stopped', told }), 'EX', ANSWER_S)
  return { 'stopped', told }
end

if plan.f then
  note(run, task.p)
  if plan.f[3] then task.s = 'ready' end
  bury(run, tid, task, false)
end
-- A join may have delivered to the list since the caller read it: then it must read it anew.
local known, length = tonumber(ARGV[8]), nil
for _, i in ipairs(plan.m or {}) do length = call('RPUSH', part.m, ARGV[i]) end
if length and length ~= known then known = 0 end
if plan.ld and call('GET', newest_append(run, tid)) == plan.ld[1] then
  for _ = 1, plan.ld[2] do table.remove(plan.l, 1) end
end
local last = log_all(run, plan.l, plan.e)
if plan.st then call('HSET', run.open, 'x:' .. task.p, ARGV[plan.st]) end
if text then call('HSET', run.key, 'text', text) end
if plan.r then call('HSET', run.key .. ':r', tid, ARGV[plan.r]) end
for _, o in ipairs(plan.o or {}) do change_state(part.s, o[1], o[2], ARGV[o[3]]) end
if plan.cut and last then cut_live(run, plan.cut, last) end

for _, d in ipairs(plan.def or {}) do call('HSETNX', run.key, d[1], ARGV[d[2]]) end
if plan.k then cancel_participants(run, plan.k) end
local ends = plan.done or plan.f
if plan.again then
  for name, value in pairs(plan.again.h or {}) do task[name] = value end
  task.s = 'wait'
  save_task(run, tid, task)
  call('ZADD', P .. 'timers', NOW + plan.again.delay, ref(run, tid))
elseif plan.park then
  task.s, task.pk = 'wait', plan.park
  save_task(run, tid, task)
elseif task.k == 'advance' and not ends then
  local missed = task.y or (plan.sg and has_signal(run, plan.sg))
  task.s, task.y, task.sg, task.su = 'wait', nil, plan.sg, plan.sg and plan.w and NOW + plan.w or nil
  save_task(run, tid, task)
  if plan.sg then call('ZADD', run.key .. ':w', 0, wait_entry(plan.sg, tid)) end
  if missed or plan.w == 0 then
    make_ready(run, tid, task)
  elseif plan.w then
    call('ZADD', P .. 'timers', 'LT', NOW + plan.w, ref(run, tid))
  end
else
  drop(run, tid, task)
end
start(run, plan)
for _, b in ipairs(plan.b or {}) do
  post(run, b[1], ARGV[b[2]])
  wake(run, b[1] .. '-a')
end
for _, n in ipairs(plan.n or {}) do call('HSET', participant_of(run, n[1]).s, n[2], ARGV[n[3]]) end
for _, k in ipairs(plan.ks or {}) do keep_talk(run, k[1], ARGV[k[2]], k[3], k[4]) end
for _, k in ipairs(plan.kd or {}) do forget_talk(run, k[1], k[2]) end
for _, a in ipairs(plan.an or {}) do answer_call(run, a[1], ARGV[a[2]]) end
if task.j and not plan.again and not plan.park and not plan.f then arrive(run, task.j, tid, task.fr) end
if ends and part.k == 'agent' then end_subagents(run, task.p) end
if plan.done then
  if task.p == '0' then
    call('HSET', run.key, 'result', ARGV[plan.done])
    finish(run, 'completed', nil, plan.say and ARGV[plan.say])
  else
    call('HDEL', run.key .. ':b', task.p)
    settle(run, task.p, part, ARGV[plan.done], false)
  end
elseif plan.f then
  -- Without the coordinator of its subagents, an agent's calls would never be answered.
  local pid = part.k == 'subagents' and part.up or task.p
  if pid == '0' then
    finish(run, plan.f[1], ARGV[plan.f[2]])
  else
    -- An agent's turn has nothing beside it: its calls are done. One that ever started participants
    -- may have some below it.
    if task.k ~= 'turn' or call('HEXISTS', run.tree, 'b:' .. pid) == 1 then cancel_participants(run, { pid }) end
    call('HDEL', run.tree, 'z:' .. pid)
    call('HDEL', run.key .. ':b', pid)
    settle(run, pid, participant_of(run, pid), ARGV[plan.f[2]], true)
  end
end

local nxt, leased = ready[1], false
if plan.next and #ready == 1 and plan.next[nxt.task.q] and nxt.run.key == run.key
  and not ((gone or plan.k or ends) and is_gone(run, nxt.task.p)) then
  ready = {}
  lease(run, nxt.tid, nxt.task, worker, ARGV[6])
  if nxt.task.p ~= task.p then known = nxt.task.p == part.up and plan.up or 0 end
  leased = lease_answer(run, nxt.tid, nxt.task, ARGV[7], known, nxt.task.p == task.p and head)
end
local told = publish_ready()
call('SET', answers, cmsgpack.pack({ told, leased and nxt.tid, leased and nxt.task.a }), 'EX', ANSWER_S)
return { 'ok', told, leased, format('%.0f', NOW), length or '' }
