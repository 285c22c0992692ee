-- A join is the set of its members that are not done; empty means go. Members beyond the width wait
-- in a list. Results are kept by member and moved, in declared order, to the participant's list.
-- A join of one member needs neither set nor lists: its header names the member.
local function deliver(run, jid, join)
  local list = participant_of(run, join.p).m
  local order = join.one and { join.one } or call('LRANGE', run.key .. ':o:' .. jid, 0, -1)
  for _, member in ipairs(order) do
    local result = call('HGET', run.key .. ':r', member)
    if result and result:sub(1, 1) ~= '#' then
      local n = call('RPUSH', list, result)
      call('HSET', run.key .. ':r', member, format('#%.0f', n - 1))
    end
  end
  if not join.one then
    call('DEL', run.key .. ':j:' .. jid, run.key .. ':o:' .. jid, run.key .. ':q:' .. jid)
  end
  call('HDEL', run.key, 'j:' .. jid)
end

local function arrive(run, jid, member)
  local raw = get(run, 'j:' .. jid)
  if not raw then return end
  local join = cjson.decode(raw)
  if join.one then
    if join.one ~= member then return end
  else
    if call('SREM', run.key .. ':j:' .. jid, member) == 0 then return end
    local nxt = call('LPOP', run.key .. ':q:' .. jid)
    local waiting = nxt and task_of(run, nxt)
    if waiting then make_ready(run, nxt, waiting) end
    if call('EXISTS', run.key .. ':j:' .. jid) == 1 then return end
  end
  deliver(run, jid, join)
  make_ready(run, join.t, task_of(run, join.t))
end

-- Record new participants, tasks and joins of a plan. Payloads are arguments, named by index.
local function start(run, plan)
  for _, p in ipairs(plan.p or {}) do
    p.m = p.m or (run.key .. ':m:' .. p.id)
    p.s = p.s or (run.key .. ':s:' .. p.id)
    local state = ARGV[p.st]
    p.st = nil
    call('HSET', run.key, 'p:' .. p.id, cjson.encode(p), 'x:' .. p.id, state)
  end
  local width = {}
  for _, j in ipairs(plan.j or {}) do
    local one = #j.m == 1 and j.m[1] or nil
    call('HSET', run.key, 'j:' .. j.id, cjson.encode({ t = j.t, p = j.p, one = one }))
    for i = 1, one and 0 or #j.m, 1000 do
      local last = math.min(i + 999, #j.m)
      call('SADD', run.key .. ':j:' .. j.id, unpack(j.m, i, last))
      call('RPUSH', run.key .. ':o:' .. j.id, unpack(j.m, i, last))
    end
    width[j.id] = j.w
  end
  for _, t in ipairs(plan.t or {}) do
    local tid, delay, payload, waits = t.id, t.delay, t.d, t.wait
    t.id, t.delay, t.d, t.wait = nil, nil, nil, nil
    if payload then call('HSET', run.key, 'd:' .. tid, ARGV[payload]) end
    if delay then
      t.s = 'wait'
      save_task(run, tid, t)
      call('ZADD', P .. 'timers', NOW + delay, ref(run, tid))
    elseif waits then
      t.s = 'wait'
      save_task(run, tid, t)
    elseif t.j and width[t.j] == 0 then
      t.s = 'wait'
      save_task(run, tid, t)
      call('RPUSH', run.key .. ':q:' .. t.j, tid)
    else
      if t.j and width[t.j] then width[t.j] = width[t.j] - 1 end
      make_ready(run, tid, t)
    end
  end
  for _, j in ipairs(plan.j or {}) do
    if #j.m == 0 then
      call('HDEL', run.key, 'j:' .. j.id)
      make_ready(run, j.t, task_of(run, j.t))
    end
  end
end
