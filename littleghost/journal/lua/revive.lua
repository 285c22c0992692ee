-- Create a run that goes on where another one ended; the other one is only read.
-- KEYS 1 the new run. ARGV 1 partition prefix, 2 new run id, 3 plan JSON, 4… payloads.
-- plan: nonce (the same call sent again gets the same answer), old run id, ended (when that ended, as
--   it was read), f fields (name, payload index), drop fields, keys, cuts, voids, gone, back,
--   joins, tasks, holder (see `journal/revival.py`), deadline (ms from now), session key, lengths that
--   its conversation may have.
-- Returns {'ok', now, ready…} | {'duplicate'} | {'gone'} | {'busy'} | {'changed'}.
local run, plan = run_of(ARGV[2]), cjson.decode(ARGV[3])
local old = run_of(plan.old)
local nonce = get(run, 'nonce')
if nonce == plan.nonce then return { 'ok', format('%.0f', NOW), {} } end
if nonce then return { 'duplicate' } end
if get(old, 'ended') ~= plan.ended then return { 'gone' } end
if plan.session then
  local holder = call('HGET', plan.session, 'holder')
  local status = holder and call('HGET', run_of(holder).key, 'status')
  if status and not is_over(status) then return { 'busy' } end
  if call('LLEN', plan.session .. ':q') > 0 then return { 'busy' } end
  local length, fits = call('LLEN', plan.session .. ':m'), false
  for _, n in ipairs(plan.lengths) do fits = fits or n == length end
  if not fits then return { 'changed' } end
end

local function copy(suffix)
  if call('COPY', old.key .. suffix, run.key .. suffix, 'REPLACE') == 1 then
    call('PERSIST', run.key .. suffix)
  end
end

local function in_chunks(command, key, items)
  for i = 1, #items, 1000 do call(command, key, unpack(items, i, math.min(i + 999, #items))) end
end

copy('')
copy(':p')
copy(':r')
in_chunks('HDEL', run.key, plan.drop)
in_chunks('HDEL', run.tree, plan.drop)
local created = format('%.0f', NOW)
call('HSET', run.key, 'status', 'queued', 'created', created, 'nonce', plan.nonce)
local places = { ['p:'] = run.tree, ['x:'] = run.open }
for _, f in ipairs(plan.f) do call('HSET', places[f[1]:sub(1, 2)] or run.key, f[1], ARGV[f[2]]) end
if plan.session then
  call('HSET', plan.session, 'holder', run.id)
  call('HSET', run.key, 'session', plan.session)
  for _, suffix in ipairs(SESSION_KEYS) do call('PERSIST', plan.session .. suffix) end
end
if plan.deadline then
  local at = format('%.0f', NOW + plan.deadline)
  call('HSET', run.key, 'deadline', at)
  call('ZADD', P .. 'deadlines', at, run.id)
end
call('ZADD', P .. 'live', NOW + 60000, run.id)
call('ZADD', P .. 'runs', created, run.id)

for _, name in ipairs(plan.keys) do copy(name) end
-- What was sent to the run, or to a participant that goes on, and was not taken in yet.
copy(':g')
copy(':b')
for _, pid in ipairs(call('HKEYS', run.key .. ':b')) do
  if call('HEXISTS', run.open, 'x:' .. pid) == 0 then call('HDEL', run.key .. ':b', pid) end
end
for _, b in ipairs(plan.back) do
  call('HSET', run.key .. ':r', b[1], call('LINDEX', run.key .. b[2], b[3]))
end
for name, length in pairs(plan.cuts) do
  if length > 0 then call('LTRIM', run.key .. name, 0, length - 1) else call('DEL', run.key .. name) end
end
for _, v in ipairs(plan.voids) do
  call('LSET', run.key .. v[1], v[2], cjson.encode({ void = v[3] }))
end
in_chunks('HDEL', run.key .. ':r', plan.gone)

event(run, '{"type":"run_start"}')
announce(run, tonumber(get(run, 'base')), call('LLEN', participant_of(run, '0').m))
for _, j in ipairs(plan.joins) do
  call('HSET', run.open, 'j:' .. j.id, cjson.encode(j.h))
  if j.h.p == '0' and not j.h.l then call('HSET', run.open, 'rj', j.id) end
  for _, name in ipairs(j.give) do
    local n = call('RPUSH', j.h.l, call('HGET', run.key .. ':r', name))
    call('HSET', run.key .. ':r', name, format('#%.0f', n - 1))
  end
  if not j.h.one then
    in_chunks('SADD', run.key .. ':j:' .. j.id, j.left)
    in_chunks('RPUSH', run.key .. ':o:' .. j.id, j.order)
    in_chunks('RPUSH', run.key .. ':q:' .. j.id, j.q)
  end
end
if plan.holder then call('HSET', run.key, 'xh', plan.holder) end
for _, t in ipairs(plan.tasks) do
  local payload = call('HGET', old.left, 'od:' .. t.id)
  if payload then call('HSET', run.open, 'd:' .. t.id, payload) end
  if t.ready then
    make_ready(run, t.id, t.h)
  else
    t.h.s = 'wait'
    save_task(run, t.id, t.h)
    if t.due then call('ZADD', P .. 'timers', t.due, ref(run, t.id)) end
  end
end
for _, j in ipairs(plan.joins) do
  if #j.left == 0 then
    deliver(run, j.id, j.h)
    wake(run, j.h.t)
  end
end
return { 'ok', format('%.0f', NOW), publish_ready() }
