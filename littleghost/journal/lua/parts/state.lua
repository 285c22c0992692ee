-- Working state is a hash of JSON values; changes are operations, so parallel tools lose nothing.
-- Whole numbers that Redis adds exactly; others are added as doubles.
local function is_whole(text)
  local digits = text:match('^%-?(%d+)$')
  return digits and #digits <= 18 and text ~= '-0'
end

local function increment(key, field, by)
  local current = call('HGET', key, field) or '0'
  if is_whole(current) and is_whole(by) then return call('HINCRBY', key, field, by) end
  local sum = (tonumber(current) or 0) + (tonumber(by) or 0)
  -- What is no JSON number (infinity) is not written.
  if sum - sum == 0 then call('HSET', key, field, format('%.17g', sum)) end
end

local function change_state(key, op, field, value)
  if op == 'set' then
    call('HSET', key, field, value)
  elseif op == 'delete' then
    call('HDEL', key, field)
  elseif op == 'increment' then
    increment(key, field, value)
  elseif op == 'append' then
    local current = call('HGET', key, field)
    if not current or current:sub(1, 1) ~= '[' or current:sub(2, 2) == ']' then
      call('HSET', key, field, '[' .. value .. ']')
    else
      call('HSET', key, field, current:sub(1, -2) .. ',' .. value .. ']')
    end
  end
end

-- Live text of a run's older turns goes; the durable events carry the finished messages.
local function cut_live(run, keep, last)
  local n = call('RPUSH', run.key .. ':cut', format('%.0f', last))
  if n > keep then
    local before = call('LPOP', run.key .. ':cut')
    call('XTRIM', run.key .. ':d', 'MINID', format('%.0f-0', tonumber(before) + 1))
  end
end
