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

-- A run is addressed by the table {id=, key=}; all its keys begin with `key`.
local function run_of(id)
  return { id = id, key = P .. 'r:' .. id }
end

local function get(run, field) return call('HGET', run.key, field) end

local function task_of(run, tid)
  local raw = get(run, 't:' .. tid)
  return raw and cjson.decode(raw) or nil
end

local function save_task(run, tid, task)
  call('HSET', run.key, 't:' .. tid, cjson.encode(task))
end

local function participant_of(run, pid)
  return cjson.decode(get(run, 'p:' .. pid))
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
