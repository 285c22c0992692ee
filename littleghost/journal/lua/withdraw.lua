-- Take a message back that no agent has got yet.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id, 3 participant, 4 message id.
-- Returns {1} when it was taken back, {0} when it was delivered, withdrawn or never there.
local run = run_of(ARGV[2])
local raw = call('HGET', run.key .. ':b', ARGV[3])
if not raw or is_over(get(run, 'status')) then return { 0 } end
local box, kept = cjson.decode(raw), {}
for _, text in ipairs(box) do
  if cjson.decode(text).id ~= ARGV[4] then kept[#kept + 1] = text end
end
if #kept == #box then return { 0 } end
if #kept == 0 then
  call('HDEL', run.key .. ':b', ARGV[3])
else
  call('HSET', run.key .. ':b', ARGV[3], cjson.encode(kept))
end
return { 1 }
