-- Clearing up, piece by piece, so that no script takes long however much a run has open: tasks that will not be
-- begun any more, joins nobody waits for, and an expiry for the keys of each participant. What must hold at once
-- does: a claim is refused (`may_begin`), and what workers have is taken from them in the script that decides
-- so. One piece is done there too, which is all of it for most runs; the keeper does others (`clear.lua`) for the
-- runs in the index `clearing`. `cur` in the record says how far a pass over a hash has come.
local PIECE, PARTICIPANTS = 300, 800

local function expire_at(run)
  return math.ceil(tonumber(get(run, 'ended')) / 1000) + RETENTION_S
end

-- Look at one piece of a hash; gives whether that was the last one of the pass.
local function each_field(run, key, count, see)
  local cursor, rows = unpack(call('HSCAN', key, get(run, 'cur') or '0', 'COUNT', count))
  for i = 1, #rows, 2 do see(rows[i]:sub(1, 2), rows[i]:sub(3), rows[i + 1]) end
  if cursor == '0' then call('HDEL', run.key, 'cur') else call('HSET', run.key, 'cur', cursor) end
  return cursor == '0'
end

-- Forget a task that is not leased. Unlike `drop` it lets no other one go.
local function clear_task(run, tid, task, is_well)
  call('ZREM', P .. 'ready', ref(run, tid))
  local timed = call('ZREM', P .. 'timers', ref(run, tid)) == 1
  if not is_well then bury(run, tid, task, timed) end
  forget_task(run, tid)
end

local function forget_join(run, jid)
  call('DEL', run.key .. ':j:' .. jid, run.key .. ':o:' .. jid, run.key .. ':q:' .. jid)
  call('HDEL', run.open, 'j:' .. jid)
end

-- A worker is told to stop; its commit changes nothing.
local function take_away(run, tid, task, is_well, why)
  tell(run, tid, task, why)
  unlease(run, tid, task)
  clear_task(run, tid, task, is_well)
end

-- What a stopped run had not begun.
local function clear_unbegun(run)
  return each_field(run, run.open, PIECE, function(kind, name, value)
    local task = kind == 't:' and cjson.decode(value)
    if task and task.s ~= 'leased' then clear_task(run, name, task, false) end
  end)
end

-- What participants have open that are gone. Their states are kept for a retry.
local function clear_gone(run)
  local status, holder, gone = unpack(call('HMGET', run.key, 'status', 'xh', 'gone'))
  if not gone then return true end
  local is_well, is_free, signals = status == 'completed', false, {}
  local is_last = each_field(run, run.open, PIECE, function(kind, name, value)
    if kind == 't:' then
      local task = cjson.decode(value)
      if is_gone(run, task.p) then
        clear_task(run, name, task, is_well)
        is_free = is_free or holder == name
        if task.sg then
          call('ZREM', run.key .. ':w', wait_entry(task.sg, name))
          if task.s == 'ready' then signals[task.sg] = true end
        end
      end
    elseif kind == 'j:' then
      local join = cjson.decode(value)
      if is_gone(run, join.p) then
        if not is_well then bury_join(run, name, join) end
        forget_join(run, name)
      end
    elseif kind == 'x:' and is_gone(run, name) then
      if not is_well then call('HSET', run.left, 'x:' .. name, value) end
      call('HDEL', run.open, 'x:' .. name)
      call('HDEL', run.key .. ':b', name)
      local part = participant_of(run, name)
      call('HSETNX', run.tree, 'z:' .. name, format('%.0f,%.0f,cancelled', part.b, NOW))
    end
  end)
  if not is_over(status) then
    if is_free then next_exclusive(run) end
    -- A signal that had woken one of them is for another that waits.
    for name in pairs(signals) do
      if has_signal(run, name) then wake_for_signal(run, name) end
    end
  end
  if is_last then
    call('DEL', run.key .. ':gone')
    call('HDEL', run.key, 'gone')
  end
  return is_last
end

-- What a run had open when it ended.
local function clear_open(run)
  local is_well = get(run, 'status') == 'completed'
  local is_last = each_field(run, run.open, PIECE, function(kind, name, value)
    if kind == 't:' then
      clear_task(run, name, cjson.decode(value), is_well)
    elseif kind == 'j:' then
      local join = cjson.decode(value)
      if not is_well then
        note(run, join.p)
        bury_join(run, name, join)
      end
      deliver(run, name, join)
    end
  end)
  if is_last then call('HDEL', run.key, 'xh') end
  return is_last
end

local function expire_participants(run)
  local at = expire_at(run)
  return each_field(run, run.tree, PARTICIPANTS, function(kind, name)
    if kind == 'p:' then
      call('EXPIREAT', run.key .. ':m:' .. name, at)
      call('EXPIREAT', run.key .. ':s:' .. name, at)
    end
  end)
end

local function expire_talks_of(run)
  local at, talks = expire_at(run), run.key .. ':k'
  return each_field(run, talks, PIECE, function(kind, name)
    call('EXPIREAT', talks .. ':' .. kind .. name, at)
  end)
end

-- Last, since the record says what is still to be done.
local EXPIRING = { '', ':t', ':p', ':f', ':e', ':d', ':r', ':i', ':x', ':cut', ':g', ':b', ':k' }

local function expire_run(run)
  local at = expire_at(run)
  for _, suffix in ipairs(EXPIRING) do call('EXPIREAT', run.key .. suffix, at) end
  return true
end

-- What is to be cleared of a run in each state, in this order.
local OVER = { clear_gone, clear_open, expire_participants, expire_talks_of, expire_run }
local STOPPING, LIVE = { clear_unbegun }, { clear_gone }

-- Do one piece of it, and what follows as long as each is done in one piece. Gives whether more is left; `clr`
-- in the record says at which step that is.
local function clear(run)
  local status, stop, at = unpack(call('HMGET', run.key, 'status', 'stop', 'clr'))
  local steps = is_over(status) and OVER or stop and STOPPING or LIVE
  at = tonumber(at or 1)
  -- The record of a run gets its expiry last.
  if is_over(status) and call('PTTL', run.key) >= 0 then at = #steps + 1 end
  while steps[at] and steps[at](run) do at = at + 1 end
  if steps[at] then
    call('HSET', run.key, 'clr', at)
    call('ZADD', P .. 'clearing', NOW, run.id)
    return true
  end
  call('HDEL', run.key, 'clr')
  call('ZREM', P .. 'clearing', run.id)
  return false
end

-- There is something new to be cleared: begin again.
local function clear_anew(run)
  call('HDEL', run.key, 'cur', 'clr')
  return clear(run)
end

-- Stop participants and all below them: their tasks are gone, and late results change nothing.
local function cancel_participants(run, pids)
  if #pids == 0 then return end
  call('HSET', run.key, 'gone', 1)
  for i = 1, #pids, 1000 do
    call('SADD', run.key .. ':gone', unpack(pids, i, math.min(i + 999, #pids)))
  end
  local holder, is_free = get(run, 'xh'), false
  for _, tid in ipairs(call('SMEMBERS', run.key .. ':l')) do
    local task = task_of(run, tid)
    if is_gone(run, task.p) then
      -- The run goes on: the worker must not think otherwise.
      take_away(run, tid, task, false, 'stale')
      is_free = is_free or holder == tid
    end
  end
  local kept = {}
  for _, item in ipairs(ready) do
    if item.run.key ~= run.key or not is_gone(run, item.task.p) then kept[#kept + 1] = item end
  end
  ready = kept
  if is_free then next_exclusive(run) end
  clear_anew(run)
end

-- An agent ends, and what its subagents still do ends with it.
local function end_subagents(run, agent)
  local pid = agent .. '.9999'
  local state = call('HGET', run.open, 'x:' .. pid)
  if not state or call('HEXISTS', run.tree, 'z:' .. pid) == 1 then return end
  local names, ids = {}, cjson.decode(state).ids or {}
  for name, item in pairs(ids) do
    local works = item.status == 'running' or item.status == 'queued'
    if works and item.kind ~= '' then names[#names + 1] = name end
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local item = ids[name]
    event(run, cjson.encode({ type = 'subagent', p = pid, d = { event = 'cancelled', subagent_id = name,
      kind = item.kind, conversation_id = item.key, resumed = item.resumed, status = 'cancelled',
      turn = item.turns } }))
  end
  cancel_participants(run, { pid })
end
