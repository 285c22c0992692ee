-- A join is the set of its members that are not done; empty means go. Members beyond the width wait
-- in a list. Results are kept by member and moved, in declared order, to the participant's list.
-- A join of one member needs neither set nor lists: its header names the member. A join with a list
-- `l` has delivered each result when it came, in whatever order.
local function deliver(run, jid, join)
  local list = join.l or participant_of(run, join.p).m
  local order = join.one and { join.one } or join.l and {} or call('LRANGE', run.key .. ':o:' .. jid, 0, -1)
  for _, member in ipairs(order) do
    local result = call('HGET', run.key .. ':r', member)
    if result and not join.keep and result:sub(1, 1) ~= '#' then
      local n = call('RPUSH', list, result)
      call('HSET', run.key .. ':r', member, format('#%.0f', n - 1))
    end
  end
  if not join.one then
    call('DEL', run.key .. ':j:' .. jid, run.key .. ':o:' .. jid, run.key .. ':q:' .. jid)
  end
  call('HDEL', run.open, 'j:' .. jid)
end

-- `is_free` says that the member took no place in the width.
local function arrive(run, jid, member, is_free)
  local join = join_of(run, jid)
  if not join then return end
  if join.one then
    if join.one ~= member then return end
  else
    if call('SREM', run.key .. ':j:' .. jid, member) == 0 then return end
    local nxt = not is_free and call('LPOP', run.key .. ':q:' .. jid)
    local waiting = nxt and task_of(run, nxt)
    if waiting then go(run, nxt, waiting) end
    if call('EXISTS', run.key .. ':j:' .. jid) == 1 then return end
  end
  deliver(run, jid, join)
  wake(run, join.t)
end

-- Record the result of a call that waited, in place of its own worker.
local function answer_call(run, tid, record)
  local task = task_of(run, tid)
  if not task or task.s ~= 'wait' then return end
  call('HSET', run.key .. ':r', tid, record)
  drop(run, tid, task)
  arrive(run, task.j, tid, task.fr)
end

-- Start an agent's or a composite's list and working state.
local function furnish(p)
  for _, i in ipairs(p.i or {}) do call('RPUSH', p.m, ARGV[i]) end
  for _, c in ipairs(p.c or {}) do call('HSET', p.s, c[1], ARGV[c[2]]) end
end

-- A participant has ended, well or not: its parent's list gets a record of it, at once when the join
-- that waits for it does not wait for the others any more.
local function settle(run, pid, part, record, failed)
  local whole = format('{"p":"%s","b":%.0f,"e":%.0f,"u":%s,"%s":%s}', pid, part.b, NOW,
    usage_of(run, pid), failed and 'x' or 'r', record)
  call('HSET', run.tree, 'z:' .. pid, format('%.0f,%.0f,%s', part.b, NOW, failed and 'failed' or 'completed'))
  call('HDEL', run.open, 't:' .. pid .. '-a', 'd:' .. pid .. '-a', 'x:' .. pid)
  call('ZREM', P .. 'timers', ref(run, pid .. '-a'))
  local join = part.j and join_of(run, part.j)
  if join and failed and call('HEXISTS', run.left, 'oj:' .. part.j) == 0 then bury_join(run, part.j, join) end
  if join and join.l then
    if call('SISMEMBER', run.key .. ':j:' .. part.j, pid) == 0 then return end
    local n = call('RPUSH', join.l, whole)
    call('HSET', run.key .. ':r', pid, format('#%.0f', n - 1))
  else
    call('HSET', run.key .. ':r', pid, whole)
  end
  if not join then return end
  if failed and join.f and not join.one then
    if call('SISMEMBER', run.key .. ':j:' .. part.j, pid) == 0 then return end
    deliver(run, part.j, join)
    wake(run, join.t)
  else
    arrive(run, part.j, pid)
  end
end


-- Subagents' conversations are kept with the session, or with the run when it has none or they are no
-- longer needed than that: facts in a hash by key, a list of messages each.
local function talks_of(run, in_run) return (not in_run and get(run, 'session') or run.key) .. ':k' end

local function keep_talk(run, key, facts, records, in_run)
  local talks = talks_of(run, in_run)
  call('HSET', talks, key, facts)
  for _, i in ipairs(records) do call('RPUSH', talks .. ':' .. key, ARGV[i]) end
end

local function forget_talk(run, key, in_run)
  local talks = talks_of(run, in_run)
  call('HDEL', talks, key)
  call('DEL', talks .. ':' .. key)
end

local function start_participant(run, p)
  if p.of then
    -- It goes on where an earlier one ended.
    local earlier = participant_of(run, p.of)
    p.m, p.s = earlier.m, earlier.s
  end
  local places = ''
  if p.m then places = places .. format('"m":"%s",', p.m) end
  if p.s then places = places .. format('"s":"%s",', p.s) end
  p.m = p.m or (run.key .. ':m:' .. p.id)
  p.s = p.s or (run.key .. ':s:' .. p.id)
  if p.kept then
    for _, record in ipairs(call('LRANGE', talks_of(run, p.inr) .. ':' .. p.kept, 0, -1)) do
      call('RPUSH', p.m, record)
    end
  end
  if p.k == 'subagents' then
    local talks = call('HGETALL', talks_of(run, p.inr))
    for i = 1, #talks, 2 do call('HSET', p.s, 'kept/' .. talks[i], talks[i + 1]) end
  end
  furnish(p)
  -- The header is text with places left out; reading and writing it for each of many takes long.
  call('HSET', run.tree, 'p:' .. p.id, format('{%s"b":%.0f,%s', places, NOW, ARGV[p.h]:sub(2)))
  call('HSET', run.open, 'x:' .. p.id, ARGV[p.st])
  -- From now on it is the one to answer; what another one said before is no part of that.
  if p.fin then call('HSET', run.key, 'fin', p.id, 'text', '') end
end

-- A task that a person must allow waits for that; it takes no place in a width, unless the tasks of its join go
-- one by one.
local function start_asked(run, tid, t, gate, width)
  t.s, t.ap, t.aw = 'wait', NOW + t.ask, t.ask
  t.ask, t.ord = nil, nil
  call('ZADD', P .. 'timers', t.ap, ref(run, tid))
  if not gate or not width then
    t.tn, t.fr = true, true
  elseif width[gate] > 0 then
    width[gate] = width[gate] - 1
    t.tn = true
  else
    call('RPUSH', run.key .. ':q:' .. gate, tid)
  end
  save_task(run, tid, t)
end

-- Many members are not all made ready at once, whatever the width. Some are; each that is claimed
-- from a message lets two more go, so that all idle workers soon have one. A worker that is done with
-- its own goes on with the next in place, and no message is sent for that: it costs more than a short
-- task. `n` is how many members have not been started yet, when they are started piece by piece.
local FIRST, AT_LEAST, PER_CLAIM = 16, 8, 2

local function free_width(run, jid, join)
  local active = call('SCARD', run.key .. ':j:' .. jid) - join.n - call('LLEN', run.key .. ':q:' .. jid)
  return math.max(0, join.w - active), active
end

-- A member of a join was claimed: let more go, if some wait and the width allows.
local function widen(run, jid)
  if call('EXISTS', run.key .. ':q:' .. jid) == 0 then return end
  local join = join_of(run, jid)
  if not join or not join.l then return end
  for _ = 1, math.min(PER_CLAIM, (free_width(run, jid, join))) do
    local nxt = call('LPOP', run.key .. ':q:' .. jid)
    local waiting = nxt and task_of(run, nxt)
    if waiting then make_ready(run, nxt, waiting) end
  end
end

-- Record new participants, tasks and joins of a plan. Payloads are arguments, named by index.
local function start(run, plan)
  local above = nil
  for _, p in ipairs(plan.p or {}) do
    -- Field `b:` says that a participant has others below it.
    if p.up and p.up ~= above then
      above = p.up
      call('HSET', run.tree, 'b:' .. above, 1)
    end
    if not p.once or call('HEXISTS', run.tree, 'p:' .. p.id) == 0 then start_participant(run, p) end
  end
  local width, gated = {}, {}
  for _, j in ipairs(plan.j or {}) do
    local join = j.n and join_of(run, j.id)
    if join then
      -- By the count before this piece: its members are not started yet.
      local free, active = free_width(run, j.id, join)
      width[j.id] = math.min(free, math.max(AT_LEAST, FIRST - active))
      join.n, gated[j.id] = j.n, true
      call('HSET', run.open, 'j:' .. j.id, cjson.encode(join))
    elseif j.m then
      local one = #j.m == 1 and j.m[1] or nil
      local list = j.d and not one and participant_of(run, j.p).m or nil
      local head = cjson.encode({ t = j.t, p = j.p, one = one, f = j.f, keep = j.keep, l = list,
          w = not one and j.w or nil, n = list and #j.m - j.s })
      -- `rj` names the root's newest join, whose results must be delivered before its run is over.
      if j.p == '0' and not list then
        call('HSET', run.open, 'j:' .. j.id, head, 'rj', j.id)
      else
        call('HSET', run.open, 'j:' .. j.id, head)
      end
      for i = 1, one and 0 or #j.m, 1000 do
        local last = math.min(i + 999, #j.m)
        call('SADD', run.key .. ':j:' .. j.id, unpack(j.m, i, last))
        if not list then call('RPUSH', run.key .. ':o:' .. j.id, unpack(j.m, i, last)) end
      end
      width[j.id] = list and math.min(j.w, FIRST) or j.w
      gated[j.id] = list and true
    end
  end
  for _, t in ipairs(plan.t or {}) do
    local tid, delay, payload, waits, gate = t.id, t.delay, t.d, t.wait, t.g or t.j
    t.id, t.delay, t.d, t.wait = nil, nil, nil, nil
    if not gated[gate] then t.g = nil end
    if payload then call('HSET', run.open, 'd:' .. tid, ARGV[payload]) end
    if t.once and call('HEXISTS', run.open, 't:' .. tid) == 1 then
      -- It is there already.
    elseif t.ask then
      start_asked(run, tid, t, gate, t.ord and width)
    elseif delay then
      t.s = 'wait'
      save_task(run, tid, t)
      call('ZADD', P .. 'timers', NOW + delay, ref(run, tid))
    elseif waits then
      t.s = 'wait'
      save_task(run, tid, t)
    elseif gate and width[gate] == 0 then
      t.s = 'wait'
      save_task(run, tid, t)
      call('RPUSH', run.key .. ':q:' .. gate, tid)
    else
      if gate and width[gate] then width[gate] = width[gate] - 1 end
      make_ready(run, tid, t)
    end
  end
  for _, j in ipairs(plan.j or {}) do
    if j.m and #j.m == 0 then
      call('HDEL', run.open, 'j:' .. j.id)
      wake(run, j.t)
    end
  end
end
