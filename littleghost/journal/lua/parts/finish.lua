-- Ending a run, and giving its session to the next one.
local function expire_talks(owner, seconds)
  local talks = owner .. ':k'
  for _, key in ipairs(call('HKEYS', talks)) do call('EXPIRE', talks .. ':' .. key, seconds) end
  call('EXPIRE', talks, seconds)
end

-- Tell of the request. What another run did for it stands behind it already in a run that goes on from that one.
local function announce(run, base, length)
  local more = length > base + 1 and format(',"d":{"records":%.0f}', length) or ''
  event(run, format('{"type":"invocation_start","p":"0","m":%.0f%s}', base, more))
end

-- The run has its session: its first messages join the conversation and its first tasks start.
local function begin(run)
  local root = participant_of(run, '0')
  local init = call('LRANGE', run.key .. ':i', 0, -1)
  local session = get(run, 'session')
  if session and root.m ~= session .. ':m' then
    local stored = call('LRANGE', session .. ':m', 0, -1)
    for i = 1, #stored, 1000 do
      call('RPUSH', root.m, unpack(stored, i, math.min(i + 999, #stored)))
    end
  end
  call('DEL', run.key .. ':i')
  local history = tonumber(get(run, 'hist'))
  local has_stored = call('EXISTS', root.m) == 1
  local base = call('LLEN', root.m)
  if not has_stored then
    for i = 1, history do base = call('RPUSH', root.m, init[i]) end
  end
  local length = base
  for i = history + 1, #init do length = call('RPUSH', root.m, init[i]) end
  call('HSET', run.key, 'base', base)
  call('HDEL', run.key, 'sw')
  local context = call('HGETALL', run.key .. ':c')
  for i = 1, #context, 1000 do
    call('HSET', root.s, unpack(context, i, math.min(i + 999, #context)))
  end
  call('DEL', run.key .. ':c')
  announce(run, base, length)
end

-- A session's keys stay while it has a run, and for some time after the last one.
local SESSION_KEYS = { '', ':m', ':s', ':q' }

local function persist_session(session)
  for _, suffix in ipairs(SESSION_KEYS) do call('PERSIST', session .. suffix) end
  local talks = session .. ':k'
  for _, key in ipairs(call('HKEYS', talks)) do call('PERSIST', talks .. ':' .. key) end
  call('PERSIST', talks)
end

local function grant_next(session)
  while true do
    local id = call('LPOP', session .. ':q')
    if not id then
      call('HDEL', session, 'holder')
      return
    end
    local run = run_of(id)
    local status = get(run, 'status')
    if status and not is_over(status) then
      call('HSET', session, 'holder', id)
      persist_session(session)
      begin(run)
      for _, tid in ipairs(cjson.decode(get(run, 'first'))) do
        local task = task_of(run, tid)
        if task then make_ready(run, tid, task) end
      end
      return
    end
  end
end

local function leave_session(run)
  local session = get(run, 'session')
  if not session then return end
  if call('HGET', session, 'holder') == run.id then
    for _, suffix in ipairs(SESSION_KEYS) do call('EXPIRE', session .. suffix, SESSION_S) end
    expire_talks(session, SESSION_S)
    grant_next(session)
  else
    call('LREM', session .. ':q', 0, run.id)
  end
end

-- End the run: nothing of it stays ready, leased or waiting; one terminal event; all keys expire.
-- What still runs is told to stop, and what this script made ready is not started any more.
local TERMINAL = { completed = 'run_stop', failed = 'run_error', partial = 'run_partial', cancelled = 'run_cancel' }

local function finish(run, outcome, err, say)
  local others, is_well = {}, outcome == 'completed'
  for _, tid in ipairs(call('SMEMBERS', run.key .. ':l')) do
    take_away(run, tid, task_of(run, tid), is_well, 'cancel')
  end
  local newest = call('HGET', run.open, 'rj')
  local join = newest and join_of(run, newest)
  if join then
    if not is_well then
      note(run, join.p)
      bury_join(run, newest, join)
    end
    deliver(run, newest, join)
  end
  for _, item in ipairs(ready) do
    if item.run.key ~= run.key then others[#others + 1] = item end
  end
  ready = others
  call('HDEL', run.key, 'stop', 'stop_error', 'cutev', 'said')
  local last = call('LLEN', participant_of(run, '0').m) - 1
  call('HSET', run.key, 'status', outcome, 'ended', format('%.0f', NOW), 'last', last)
  if err then call('HSET', run.key, 'error', err) end
  if outcome ~= 'completed' and outcome ~= 'partial' then call('HDEL', run.key, 'text') end
  event(run, format('{"type":"%s"}', TERMINAL[outcome]))
  call('ZREM', P .. 'live', run.id)
  call('ZREM', P .. 'deadlines', run.id)
  call('ZREM', P .. 'stops', run.id)
  for _, suffix in ipairs({ ':x', ':c', ':cut', ':w' }) do call('UNLINK', run.key .. suffix) end
  -- What was sent in and not taken yet goes on with a retry.
  if is_well then call('UNLINK', run.key .. ':g', run.key .. ':b', run.left) end
  local session = get(run, 'session')
  if session then
    -- What this run left, whatever later runs of the session make of it.
    call('COPY', session .. ':s', run.key .. ':s:0', 'REPLACE')
  end
  if say and session then
    local asked = call('LINDEX', participant_of(run, '0').m, tonumber(get(run, 'base')))
    call('RPUSH', session .. ':m', asked, say)
  end
  leave_session(run)
  clear_anew(run)
end

-- End a run from outside its own decisions: the engine left the events that belong to that.
local function finish_cut(run, outcome, err)
  local note = get(run, 'cutev')
  if note then event(run, note) end
  finish(run, outcome, err)
end

-- What the newest attempt at a turn had said, from the live text of the participant whose answer would
-- be the run's; a withdrawn attempt said nothing.
local function unfinished_text(run)
  local pieces, who, from = {}, get(run, 'fin') or '0', '+'
  for _ = 1, 20 do
    local page = call('XREVRANGE', run.key .. ':d', from, '-', 'COUNT', 200)
    from = nil
    for _, entry in ipairs(page) do
      from = '(' .. entry[1]
      local item = cjson.decode(entry[2][2])
      if item.p == who then
        if item.type == 'model_start' or item.type == 'model_retry' then from = nil break end
        if item.type == 'text_delta' then pieces[#pieces + 1] = item.d.text end
      end
    end
    if not from then break end
  end
  for i = 1, math.floor(#pieces / 2) do
    pieces[i], pieces[#pieces + 1 - i] = pieces[#pieces + 1 - i], pieces[i]
  end
  return table.concat(pieces)
end

local function finish_stopped(run)
  if get(run, 'stop') == 'deadline' then
    local text = get(run, 'said') or unfinished_text(run)
    if text:find('%S') then call('HSET', run.key, 'text', text) end
  end
  local outcome = get(run, 'stop') == 'deadline' and 'partial' or 'cancelled'
  finish_cut(run, outcome, get(run, 'stop_error'))
end

-- A leased task comes back undone. `lost` says that its worker died with it.
local function give_back(run, tid, task, lost)
  unlease(run, tid, task)
  if get(run, 'stop') then
    bury(run, tid, task, false)
    forget_task(run, tid)
    if leased_count(run) == 0 then finish_stopped(run) end
    return
  end
  if lost then task.l = (task.l or 0) + 1 end
  if task.k == 'turn' then
    live(run, format('{"type":"model_retry","p":"%s","d":{"attempt":%d,"delay":0,"error_class":"%s"}}',
      task.p, task.a, lost and 'WorkerLostError' or 'HandOverError'))
  end
  make_ready(run, tid, task)
end
