-- Tasks: ready (a worker may take it), leased (a worker has it), wait (something must happen first).
-- Header fields: k kind, p participant, q queue, s status, a attempts (the fencing token), w worker,
-- pk the participant it waits for, y wake it again when its worker is done, c child process, z the claim that
-- took it, l times lost, at published (ms), n republished, x exclusive, i idempotent, j join, g the join whose
-- width it waited for, sg the signal it waits for, su until when (ms), ap until when a person may allow it (ms), an
-- the person's answer (JSON), tn its turn has come, fr it takes no place in its join's width, ml it has taken
-- messages in.
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

-- The turn of a task has come, though a person may still have to allow it.
local function go(run, tid, task)
  if task.ap and not task.an then
    task.tn = true
    save_task(run, tid, task)
  else
    make_ready(run, tid, task)
  end
end

-- A person has answered for a task, or the time for that is over. The first answer stays.
local function answer_for(run, tid, task, verdict)
  task.an = verdict
  call('HSET', run.tree, 'a:' .. tid, verdict)
  call('ZREM', P .. 'timers', ref(run, tid))
  event(run, format('{"type":"approval_answered","p":"%s","d":{"id":"%s","answer":%s}}', task.p, tid, verdict))
  if task.tn then make_ready(run, tid, task) else save_task(run, tid, task) end
end

local function expire_question(run, tid, task)
  answer_for(run, tid, task, '{"verdict":"expired"}')
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

-- What was sent to a participant while it was busy. One task of it at a time takes it in, and the list changes
-- only under that task's lease: an agent's user messages at a turn, a coordinator's requests at an advance.
local function post(run, pid, text)
  local raw = call('HGET', run.key .. ':b', pid)
  local box = raw and cjson.decode(raw) or {}
  box[#box + 1] = text
  call('HSET', run.key .. ':b', pid, cjson.encode(box))
end

-- An agent takes the first message, and those behind it that share its batch key.
local function take_messages(run, pid, list, box)
  local ids, key = {}, nil
  while #box > 0 and #ids < 100 do
    local item = cjson.decode(box[1])
    if #ids > 0 and (not item.key or item.key ~= key) then break end
    key = item.key
    ids[#ids + 1] = item.id
    call('RPUSH', list, item.r)
    table.remove(box, 1)
  end
  event(run, format('{"type":"agent_interjection_delivered","p":"%s","d":%s}', pid,
    cjson.encode({ interjection_ids = ids, batch_key = key or cjson.null })))
  if #box == 0 then
    call('HDEL', run.key .. ':b', pid)
  else
    call('HSET', run.key .. ':b', pid, cjson.encode(box))
  end
end

-- The oldest signal of a name goes to whoever waits for it.
local function take_signal(run, pid, name)
  for _, raw in ipairs(call('LRANGE', run.key .. ':g', 0, -1)) do
    local item = cjson.decode(raw)
    if item.n == name then
      call('LREM', run.key .. ':g', 1, raw)
      call('RPUSH', participant_of(run, pid).m, item.r)
      return
    end
  end
end

local function has_signal(run, name)
  for _, raw in ipairs(call('LRANGE', run.key .. ':g', 0, -1)) do
    if cjson.decode(raw).n == name then return true end
  end
  return false
end

-- Who waits for signals stands in a sorted set of names and tasks. Let one that waits for this name look for it;
-- an entry whose task does not wait any more is dropped when it is met.
local function wait_entry(name, tid) return #name .. ':' .. name .. ':' .. tid end

local function wake_for_signal(run, name)
  local start = wait_entry(name, '')
  while true do
    local entry = call('ZRANGEBYLEX', run.key .. ':w', '[' .. start, '(' .. start .. '\255', 'LIMIT', 0, 1)[1]
    if not entry then return end
    local tid = entry:sub(#start + 1)
    local task = task_of(run, tid)
    if task and task.sg == name and task.s == 'wait' and not is_gone(run, task.p) then return wake(run, tid) end
    call('ZREM', run.key .. ':w', entry)
  end
end

local function take_mail(run, tid, task)
  if task.k == 'call' then return end
  if task.sg then
    take_signal(run, task.p, task.sg)
    call('ZREM', run.key .. ':w', wait_entry(task.sg, tid))
    task.sg, task.su = nil, nil
  end
  local raw = call('HGET', run.key .. ':b', task.p)
  if not raw then return end
  local part, box = participant_of(run, task.p), cjson.decode(raw)
  if part.k == 'agent' then
    -- One delivery a turn, however often its worker dies: what is answered together stays the same.
    if not task.ml then
      task.ml = true
      take_messages(run, task.p, part.m, box)
    end
    return
  end
  for _, record in ipairs(box) do call('RPUSH', part.m, record) end
  call('HDEL', run.key .. ':b', task.p)
end

local function lease(run, tid, task, worker, child, claim)
  take_mail(run, tid, task)
  task.s, task.w, task.c, task.a = 'leased', worker, child, (task.a or 0) + 1
  task.z = claim
  save_task(run, tid, task)
  -- The first task a worker holds makes it a holder, whose death the keeper looks for.
  if call('SADD', P .. 'held:' .. worker, ref(run, tid)) == 1
    and call('SCARD', P .. 'held:' .. worker) == 1 then
    call('SADD', P .. 'holders', worker)
  end
  call('SADD', run.key .. ':l', tid)
end

local function unlease(run, tid, task)
  call('SREM', P .. 'held:' .. task.w, ref(run, tid))
  call('SREM', run.key .. ':l', tid)
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

-- How many tasks of a run workers have.
local function leased_count(run) return call('SCARD', run.key .. ':l') end

-- Let the next exclusive task go; those of participants that are gone are passed over.
local function next_exclusive(run)
  call('HDEL', run.key, 'xh')
  local nxt = call('LPOP', run.key .. ':x')
  while nxt do
    local waiting = task_of(run, nxt)
    if waiting and not is_gone(run, waiting.p) then return make_ready(run, nxt, waiting) end
    nxt = call('LPOP', run.key .. ':x')
  end
end

-- Forget a task that is not leased, and let the next exclusive one go.
local function drop(run, tid, task)
  forget_task(run, tid)
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
-- first run expired is never mixed up with it. `head` is the participant's header if it was read before.
local function lease_answer(run, tid, task, created, known, head)
  local f = call('HMGET', run.key, 'deadline', 'fp', 'asm', 'ln', 'created', 'base')
  local work = call('HMGET', run.open, 'd:' .. tid, 'x:' .. task.p)
  head = head or call('HGET', run.tree, 'p:' .. task.p)
  local knows_run = created == f[5]
  local part = cjson.decode(head)
  local left = f[1] and format('%.0f', tonumber(f[1]) - NOW) or ''
  local from, list = 0, {}
  if task.k ~= 'call' then
    local n, name = knows_run and tonumber(known) or 0, part.m or (run.key .. ':m:' .. task.p)
    if n > 0 and n <= call('LLEN', name) then from = n end
    list = call('LRANGE', name, from, -1)
  end
  local inv = knows_run and '' or get(run, 'inv')
  return { tid, cjson.encode(task), work[1] or '', inv, head, work[2] or '{}', left, from, list,
    call('HGETALL', part.s or (run.key .. ':s:' .. task.p)), f[2], f[3], f[4] or '', f[5], f[6] or '0',
    task.pk and call('HGET', run.key .. ':r', task.pk) or '' }
end
