-- Tokens, as JSON by bucket: `u:<participant>` counts what a participant used itself, `w:<participant>` what all
-- below it used.
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

-- Count for a participant and for all above it, in two commands.
local function add_usage(run, pid, more)
  if not next(more) then return end
  local names = { 'u:' .. pid }
  for _, above in ipairs(all_above(pid)) do names[#names + 1] = 'w:' .. above end
  local changed = {}
  for i, text in ipairs(call('HMGET', run.tree, unpack(names))) do
    local counts = text and cjson.decode(text) or {}
    add_counts(counts, more)
    changed[#changed + 1] = names[i]
    changed[#changed + 1] = counts_text(counts)
  end
  call('HSET', run.tree, unpack(changed))
end

-- What a participant and all below it used, as JSON.
local function usage_of(run, pid)
  local counts = {}
  for _, text in ipairs(call('HMGET', run.tree, 'u:' .. pid, 'w:' .. pid)) do
    if text then add_counts(counts, cjson.decode(text)) end
  end
  return counts_text(counts)
end
