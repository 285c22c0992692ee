-- What every script shares. These constants stand before it when the scripts are loaded: ENVELOPE (the
-- broker message with placeholders), PUSH (the queue key prefix, or false when the worker
-- publishes), GRACE_MS, RETENTION_S, SESSION_S, ANSWER_S, SCHEMA (the journal version), BUCKETS (of
-- tokens).
local call, format = redis.call, string.format

local function now_ms()
  local t = call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

local P, NOW = ARGV[1], now_ms()

-- A run is addressed by this table; all its keys begin with `key`. Its record is small, however many
-- participants it has. `open` holds what is still to be done (`t:` tasks, `d:` payloads, `j:` joins, `x:` states
-- of participants), `tree` what is kept of participants, `left` what a run that did not end well had open.
local function run_of(id)
  local key = P .. 'r:' .. id
  return { id = id, key = key, open = key .. ':t', tree = key .. ':p', left = key .. ':f' }
end

local function get(run, field) return call('HGET', run.key, field) end

local function task_of(run, tid)
  local raw = call('HGET', run.open, 't:' .. tid)
  return raw and cjson.decode(raw) or nil
end

local function save_task(run, tid, task)
  call('HSET', run.open, 't:' .. tid, cjson.encode(task))
end

local function forget_task(run, tid) call('HDEL', run.open, 't:' .. tid, 'd:' .. tid) end

local function join_of(run, jid)
  local raw = call('HGET', run.open, 'j:' .. jid)
  return raw and cjson.decode(raw) or nil
end

-- Those above a participant, the nearest first.
local function all_above(pid)
  local found, above = {}, pid:match('^(.*)%.')
  while above do
    found[#found + 1] = above
    above = above:match('^(.*)%.')
  end
  return found
end

-- A header leaves out what follows from the participant's id. Gives its text as well.
local function participant_of(run, pid)
  local head = call('HGET', run.tree, 'p:' .. pid)
  local part = cjson.decode(head)
  part.m = part.m or (run.key .. ':m:' .. pid)
  part.s = part.s or (run.key .. ':s:' .. pid)
  part.up = part.up or pid:match('^(.*)%.')
  return part, head
end

-- Events are numbered per run; the number is the resume cursor. Durable events and live text have a
-- stream each, so that old live text can go and its memory with it.
local function log(run, stream, n, json)
  call('XADD', run.key .. stream, format('%.0f-0', n), 'e', json)
end

local function event(run, json) log(run, ':e', call('HINCRBY', run.key, 'ev', 1), json) end

local function live(run, json) log(run, ':d', call('HINCRBY', run.key, 'ev', 1), json) end

-- Add live events and then durable ones, given as indexes of arguments; gives the last number.
-- What the newest append of live text of a task was called.
local function newest_append(run, tid) return P .. 'answer:' .. run.id .. ':' .. tid .. ':emit' end

local function log_all(run, lives, events)
  lives, events = lives or {}, events or {}
  local count = #lives + #events
  if count == 0 then return nil end
  local last = call('HINCRBY', run.key, 'ev', count)
  local n = last - count
  for _, i in ipairs(lives) do n = n + 1 log(run, ':d', n, ARGV[i]) end
  for _, i in ipairs(events) do n = n + 1 log(run, ':e', n, ARGV[i]) end
  return last
end

local function is_over(status)
  return status == 'completed' or status == 'failed' or status == 'partial' or status == 'cancelled'
end

-- A participant is gone when it or one above it was cancelled, though what it had open may still be there: that
-- is cleared piece by piece.
local function is_gone(run, pid)
  for _, found in ipairs(call('SMISMEMBER', run.key .. ':gone', pid, unpack(all_above(pid)))) do
    if found == 1 then return true end
  end
  return false
end

-- Whether a task of a participant may still be begun.
local function may_begin(run, pid)
  local status, stop, gone = unpack(call('HMGET', run.key, 'status', 'stop', 'gone'))
  return status and not stop and not is_over(status) and not (gone and is_gone(run, pid))
end
