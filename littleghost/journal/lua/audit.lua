-- Prove that a live run can still end, and mend what a lost write left behind.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 '1' to mend, 4 error JSON for an abandoned run,
-- 5 how far the audit has come ('0' at first), '' to look at all at once.
-- Returns {verdict, detail…}: 'over', 'session', 'ready', 'leased', 'timer', 'person', 'abandoned'; or
-- {'more', ready…, how far it has come} when it found no proof yet. A run may move on between two pieces, so only
-- one that was looked at all at once is abandoned.
local run, mend = run_of(ARGV[2]), ARGV[3] == '1'
local status = get(run, 'status')
if not status or is_over(status) then
  if mend then
    for _, index in ipairs({ 'live', 'deadlines', 'stops' }) do call('ZREM', P .. index, run.id) end
  end
  return { 'over' }
end
if mend then call('ZADD', P .. 'live', NOW + 300000, run.id) end
local found, cursor, fields = {}, '0', nil
if ARGV[5] == '' then
  fields = call('HGETALL', run.open)
else
  cursor, fields = unpack(call('HSCAN', run.open, ARGV[5], 'COUNT', 2 * PIECE))
end
for i = 1, #fields, 2 do
  if fields[i]:sub(1, 2) == 't:' then
    local tid, task = fields[i]:sub(3), cjson.decode(fields[i + 1])
    local name = ref(run, tid)
    if task.s == 'ready' then
      if mend and not call('ZSCORE', P .. 'ready', name) then call('ZADD', P .. 'ready', NOW, name) end
      if mend or call('ZSCORE', P .. 'ready', name) then found.ready = true end
    elseif task.s == 'leased' then
      if mend then
        call('SADD', P .. 'held:' .. task.w, name)
        call('SADD', P .. 'holders', task.w)
        call('SADD', run.key .. ':l', tid)
      end
      if call('SISMEMBER', P .. 'held:' .. task.w, name) == 1 then found.leased = true end
    elseif (task.ap and not task.an) or task.sg then
      found.person = true
      local ends = task.ap or task.su
      if mend and ends then call('ZADD', P .. 'timers', 'NX', ends, name) end
      if mend and task.sg then call('ZADD', run.key .. ':w', 0, wait_entry(task.sg, tid)) end
    elseif call('ZSCORE', P .. 'timers', name) then
      found.timer = true
    end
  end
end
if mend and get(run, 'clr') then call('ZADD', P .. 'clearing', 'NX', NOW, run.id) end
if get(run, 'sw') and status == 'queued' then
  local session = get(run, 'session')
  local holder = call('HGET', session, 'holder')
  local alive = holder and call('HGET', run_of(holder).key, 'status')
  if alive and not is_over(alive) then found.session = true
  elseif mend then grant_next(session) found.session = true end
end
for _, verdict in ipairs({ 'ready', 'leased', 'timer', 'person', 'session' }) do
  if found[verdict] then return { verdict, publish_ready(), cursor } end
end
if ARGV[5] ~= '' and (cursor ~= '0' or ARGV[5] ~= '0') then return { 'more', publish_ready(), cursor } end
if mend then finish_cut(run, 'failed', ARGV[4]) end
return { 'abandoned', publish_ready() }
