-- Create a run and make its first tasks ready, or let it wait for its session.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 plan JSON, 4… payloads.
-- plan: nonce (the same call sent again gets the same answer), f fields (name, payload index), h
--   history count, i message payloads, c context (key, payload), deadline (ms from now), session
--   key, limit of waiting runs, fresh (refuse a session that has begun), p participants, t tasks.
-- Returns {'ok', now, ready…} | {'duplicate'} | {'busy', waiting} | {'taken'}.
local run, plan = run_of(ARGV[2]), cjson.decode(ARGV[3])
local nonce = get(run, 'nonce')
if nonce == plan.nonce then return { 'ok', format('%.0f', NOW), {} } end
if nonce then return { 'duplicate' } end
local waits = false
if plan.fresh and (call('EXISTS', plan.session .. ':m') == 1 or call('HEXISTS', plan.session, 'holder') == 1) then
  return { 'taken' }
end
if plan.session then
  local holder = call('HGET', plan.session, 'holder')
  local status = holder and call('HGET', run_of(holder).key, 'status')
  if status and not is_over(status) then
    local length = call('LLEN', plan.session .. ':q')
    if length >= plan.limit then return { 'busy', length } end
    call('RPUSH', plan.session .. ':q', run.id)
    waits = true
  else
    call('HSET', plan.session, 'holder', run.id)
  end
  call('HSET', run.key, 'session', plan.session, 'sw', 1)
  persist_session(plan.session)
end
local created = format('%.0f', NOW)
call('HSET', run.key, 'status', 'queued', 'created', created, 'hist', plan.h or 0, 'nonce', plan.nonce, 'v', SCHEMA)
for _, f in ipairs(plan.f) do call('HSET', run.key, f[1], ARGV[f[2]]) end
if plan.deadline then
  local at = format('%.0f', NOW + plan.deadline)
  call('HSET', run.key, 'deadline', at)
  call('ZADD', P .. 'deadlines', at, run.id)
end
for _, i in ipairs(plan.i or {}) do call('RPUSH', run.key .. ':i', ARGV[i]) end
for _, c in ipairs(plan.c or {}) do call('HSET', run.key .. ':c', c[1], ARGV[c[2]]) end
if plan.session then
  -- An agent's conversation is the session's; a composite's list holds more than conversation.
  if plan.p[1].k == 'agent' then plan.p[1].m = plan.session .. ':m' end
  plan.p[1].s = plan.session .. ':s'
end
call('ZADD', P .. 'live', NOW + 60000, run.id)
call('ZADD', P .. 'runs', created, run.id)
event(run, '{"type":"run_start"}')
local first = {}
for _, t in ipairs(plan.t) do
  first[#first + 1] = t.id
  if waits then t.wait = true end
end
if plan.session then call('HSET', run.key, 'first', cjson.encode(first)) end
start(run, { p = plan.p })
if not waits then begin(run) end
start(run, { t = plan.t, j = plan.j })
return { 'ok', format('%.0f', NOW), publish_ready() }
