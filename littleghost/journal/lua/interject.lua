-- Put a message into the inbox of the one agent that is at work.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 entry JSON {id, key, r record}, 4 id, 5 digest, 6 how many
-- messages a run takes.
-- Returns {'ok', participant, number of the newest event} | {'none'} | {'over', status} | {'differs'} | {'full'} |
-- {'agents', how many are at work}; the same id and digest gets the first answer.
local run = run_of(ARGV[2])
local status = get(run, 'status')
if not status then return { 'none' } end
local known = get(run, 'i:' .. ARGV[4])
if known then
  local at, pid, number = known:match('^(%S+) (%S+) (%S+)$')
  if at ~= ARGV[5] then return { 'differs' } end
  return { 'ok', pid, number }
end
if is_over(status) or status == 'stopping' then return { 'over', status } end
local found = {}
local fields = call('HGETALL', run.key)
local ended, agents = {}, {}
for i = 1, #fields, 2 do
  local kind, name = fields[i]:sub(1, 2), fields[i]:sub(3)
  if kind == 'z:' then ended[name] = true end
  if kind == 'p:' and cjson.decode(fields[i + 1]).k == 'agent' then agents[name] = true end
end
-- What works for an agent, as its tool or subagent, is not spoken to directly.
local function is_below_agent(pid)
  local above = pid:match('^(.*)%.[^.]+$')
  while above do
    if agents[above] then return true end
    above = above:match('^(.*)%.[^.]+$')
  end
  return false
end
for pid in pairs(agents) do
  if not ended[pid] and not is_below_agent(pid) then found[#found + 1] = pid end
end
if #found ~= 1 then return { 'agents', #found } end
local count = call('HINCRBY', run.key, 'ij', 1)
if count > tonumber(ARGV[6]) then
  call('HINCRBY', run.key, 'ij', -1)
  return { 'full' }
end
local number = get(run, 'ev')
call('HSET', run.key, 'i:' .. ARGV[4], ARGV[5] .. ' ' .. found[1] .. ' ' .. number)
post(run, found[1], ARGV[3])
return { 'ok', found[1], number }
