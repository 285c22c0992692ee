-- Tokens: `u:<participant>:<bucket>` counts what a participant used itself; `w:<participant>` holds, as
-- JSON, what those below it used that have ended.
local function counts_text(counts)
  local found = {}
  for _, bucket in ipairs(BUCKETS) do
    local n = counts[bucket] or 0
    if n > 0 then found[#found + 1] = format('"%s":%.0f', bucket, n) end
  end
  return '{' .. table.concat(found, ',') .. '}'
end

local function add_counts(counts, more)
  for bucket, n in pairs(more) do counts[bucket] = (counts[bucket] or 0) + tonumber(n) end
end

local function counts_below(run, pid)
  local text = get(run, 'w:' .. pid)
  return text and cjson.decode(text) or {}
end

local function set_below(run, pid, counts)
  local text = counts_text(counts)
  if text ~= '{}' then call('HSET', run.key, 'w:' .. pid, text) end
end

-- A participant has ended: what it and all below it used is added to what is below its parent, in a
-- fixed number of commands. Gives it as JSON. Nobody asks the root for its part.
local function pass_up(run, pid, up)
  local names, own = {}, {}
  for i, bucket in ipairs(BUCKETS) do names[i] = 'u:' .. pid .. ':' .. bucket end
  for i, n in ipairs(call('HMGET', run.key, unpack(names))) do own[BUCKETS[i]] = n or nil end
  local counts = counts_below(run, pid)
  if next(counts) then call('HDEL', run.key, 'w:' .. pid) end
  add_counts(counts, own)
  local text = counts_text(counts)
  if up ~= '0' and text ~= '{}' then
    local sum = counts_below(run, up)
    add_counts(sum, counts)
    set_below(run, up, sum)
  end
  return text
end
