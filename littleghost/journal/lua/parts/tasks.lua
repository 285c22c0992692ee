-- Tasks: ready (a worker may take it), leased (a worker has it), wait (something must happen first).
-- Header fields: k kind, p participant, q queue, s status, a attempts (the fencing token), w worker,
-- pk the participant it waits for, y wake it again when its worker is done, c child process, z the claim that took it, l times lost, at published (ms), n republished, x exclusive, i idempotent, j join,
-- g the join whose width it waited for.
-- What this script made ready: {run, tid, task}. It is written by `publish_ready`, at the end of every
-- script, or leased at once instead.
local ready = {}

local function ref(run, tid) return run.id .. '|' .. tid end

local function publish(run, tid, task)
  if not PUSH then return end
  local fill = { ID = run.id, TID = tid, KIND = task.k, QUEUE = task.q, AT = format('%.0f', task.at) }
  call('LPUSH', PUSH .. task.q, (ENVELOPE:gsub('@(%u+)@', fill)))
end

local function make_ready(run, tid, task)
  if task.x then
    local holder = get(run, 'xh')
    if holder and holder ~= tid then
      task.s = 'wait'
      save_task(run, tid, task)
      call('RPUSH', run.key .. ':x', tid)
      return
    end
    call('HSET', run.key, 'xh', tid)
  end
  task.s, task.at, task.n = 'ready', NOW, 0
  ready[#ready + 1] = { run = run, tid = tid, task = task }
end

-- A coordinator has one advance task, which waits until something for it to decide has happened. One
-- that is being worked on is woken again afterwards, since it may have looked already.
local function wake(run, tid)
  local task = task_of(run, tid)
  if not task then return end
  if task.s == 'wait' then
    call('ZREM', P .. 'timers', ref(run, tid))
    make_ready(run, tid, task)
  elseif task.s == 'leased' and task.k == 'advance' then
    task.y = true
    save_task(run, tid, task)
  end
end

local function lease(run, tid, task, worker, child, claim)
  task.s, task.w, task.c, task.a = 'leased', worker, child, (task.a or 0) + 1
  task.z = claim
  save_task(run, tid, task)
  -- The first task a worker holds makes it a holder, whose death the keeper looks for.
  if call('SADD', P .. 'held:' .. worker, ref(run, tid)) == 1
    and call('SCARD', P .. 'held:' .. worker) == 1 then
    call('SADD', P .. 'holders', worker)
  end
  call('HINCRBY', run.key, 'held', 1)
end

local function unlease(run, tid, task)
  call('SREM', P .. 'held:' .. task.w, ref(run, tid))
  call('HINCRBY', run.key, 'held', -1)
  task.w, task.c, task.z = nil, nil, nil
end

-- Tell the worker of a leased task to stop; the note stays for a minute in case the message is lost.
local function tell(run, tid, task, why)
  call('PUBLISH', 'lg:control:' .. task.w,
    cjson.encode({ run = run.id, task = tid, attempt = task.a, why = why }))
  local notes = P .. 'control:' .. task.w
  call('HSET', notes, ref(run, tid) .. '|' .. task.a, why)
  call('EXPIRE', notes, 60)
end

-- Let the next exclusive task go; those of participants that are gone are passed over.
local function next_exclusive(run)
  call('HDEL', run.key, 'xh')
  local nxt = call('LPOP', run.key .. ':x')
  while nxt do
    local waiting = task_of(run, nxt)
    if waiting then return make_ready(run, nxt, waiting) end
    nxt = call('LPOP', run.key .. ':x')
  end
end

-- Forget a task that is not leased, and let the next exclusive one go.
local function drop(run, tid, task)
  call('HDEL', run.key, 't:' .. tid, 'd:' .. tid)
  if task.s == 'ready' then call('ZREM', P .. 'ready', ref(run, tid)) end
  if task.s == 'wait' then call('ZREM', P .. 'timers', ref(run, tid)) end
  if task.x and get(run, 'xh') == tid then next_exclusive(run) end
end

-- Publish what became ready and tell the caller about it: kind, queue, run, task, time for each.
local function publish_ready()
  local told = {}
  for _, item in ipairs(ready) do
    if not item.again then
      save_task(item.run, item.tid, item.task)
      call('ZADD', P .. 'ready', NOW + GRACE_MS, ref(item.run, item.tid))
    end
    publish(item.run, item.tid, item.task)
    told[#told + 1] = { item.task.k, item.task.q, item.run.id, item.tid, format('%.0f', item.task.at) }
  end
  return told
end

-- Answer a claim: header, payload, invocation, participant, state, time left, list, working state.
-- `created` is the creation time of the run the caller remembers, so that an id used again after its
-- first run expired is never mixed up with it.
local function lease_answer(run, tid, task, created, known)
  local f = call('HMGET', run.key, 'd:' .. tid, 'p:' .. task.p, 'x:' .. task.p, 'deadline',
    'fp', 'asm', 'ln', 'created', 'base')
  local knows_run = created == f[8]
  local part = cjson.decode(f[2])
  local left = f[4] and format('%.0f', tonumber(f[4]) - NOW) or ''
  local from, list = 0, {}
  if task.k ~= 'call' then
    local n = knows_run and tonumber(known) or 0
    if n > 0 and n <= call('LLEN', part.m) then from = n end
    list = call('LRANGE', part.m, from, -1)
  end
  local inv = knows_run and '' or get(run, 'inv')
  return { tid, cjson.encode(task), f[1] or '', inv, f[2], f[3] or '{}', left, from, list,
    call('HGETALL', part.s), f[5], f[6], f[7] or '', f[8], f[9] or '0',
    task.pk and call('HGET', run.key .. ':r', task.pk) or '' }
end
