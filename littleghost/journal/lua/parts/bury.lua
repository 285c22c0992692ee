-- A run that does not end well keeps what it had open in a hash of its own, so that another run may go
-- on from there: `ot:` tasks as they were, `od:` their payloads, `oj:` joins, `x:` states of participants that
-- were cancelled, and `f:` where a participant stood. Nothing of it is ever looked at by the run itself. A run
-- that goes well writes none of it, or drops it at its end.

-- Keep a task that is about to be forgotten. Added to its header: tm it waited for a time, hx it was
-- the run's active exclusive task.
local function bury(run, tid, task, timed)
  if timed then task.tm = true end
  if task.x and get(run, 'xh') == tid then task.hx = true end
  call('HSET', run.left, 'ot:' .. tid, cjson.encode(task))
  local payload = call('HGET', run.open, 'd:' .. tid)
  if payload then call('HSET', run.left, 'od:' .. tid, payload) end
end

-- Keep a join: its header, the order of its members, and the tasks that it had not let start yet.
local function bury_join(run, jid, join)
  local grave = { h = join }
  if not join.one then
    -- One that delivers at once has no order: what is left of its members is all that matters.
    grave.o = join.l and call('SMEMBERS', run.key .. ':j:' .. jid) or call('LRANGE', run.key .. ':o:' .. jid, 0, -1)
    grave.q = call('LRANGE', run.key .. ':q:' .. jid, 0, -1)
  end
  call('HSET', run.left, 'oj:' .. jid, cjson.encode(grave))
end

-- Keep where a participant stands before its end changes that: the length of its list,
-- and what decides for it remembers.
local function note(run, pid)
  if call('HEXISTS', run.left, 'f:' .. pid) == 1 then return end
  local length = call('LLEN', participant_of(run, pid).m)
  call('HSET', run.left, 'f:' .. pid, format('%.0f,%s', length, call('HGET', run.open, 'x:' .. pid) or '{}'))
end
