-- One partition's round of the keeper: fire timers, and list what needs a look.
-- KEYS 1 the partition's ready set. ARGV 1 partition prefix, 2 how many of each at most.
-- Returns {now, fired (ready…), unclaimed {ref, queue, published, times}, deadlines, overdue stops,
--   runs to audit, holders, delivered (queue, time…), runs to be cleared up}.
local limit = tonumber(ARGV[2])
local function due(name)
  return call('ZRANGEBYSCORE', P .. name, '-inf', format('%.0f', NOW), 'LIMIT', 0, limit)
end
for _, name in ipairs(due('timers')) do
  call('ZREM', P .. 'timers', name)
  local at = name:find('|', 1, true)
  local run, tid = run_of(name:sub(1, at - 1)), name:sub(at + 1)
  local task = task_of(run, tid)
  if task and not may_begin(run, task.p) then
    -- It will be cleared; that it waited for a time is kept until then.
    call('ZADD', P .. 'timers', NOW + 60000, name)
  elseif task and task.ap and not task.an then
    if NOW >= task.ap then
      expire_question(run, tid, task)
    else
      call('ZADD', P .. 'timers', task.ap, name)
    end
  elseif task and task.s == 'wait' then
    make_ready(run, tid, task)
  elseif task then
    wake(run, tid)
  end
end
local unclaimed = {}
for _, name in ipairs(due('ready')) do
  local at = name:find('|', 1, true)
  local run = run_of(name:sub(1, at - 1))
  local task = task_of(run, name:sub(at + 1))
  if task and not may_begin(run, task.p) then
    call('ZADD', P .. 'ready', NOW + 60000, name)
  elseif task and task.s == 'ready' then
    unclaimed[#unclaimed + 1] = { name, task.q, format('%.0f', task.at), task.n }
  else
    call('ZREM', P .. 'ready', name)
  end
end
call('ZREMRANGEBYSCORE', P .. 'runs', '-inf', format('%.0f', NOW - RETENTION_S * 1000 - 604800000))
return { format('%.0f', NOW), publish_ready(), unclaimed, due('deadlines'), due('stops'), due('live'),
  call('SMEMBERS', P .. 'holders'), call('HGETALL', P .. 'delivered'), due('clearing') }
