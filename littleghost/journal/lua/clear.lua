-- Clear up one more piece of what a run had open.
-- KEYS 1 run. ARGV 1 partition prefix, 2 run id.
-- Returns {1 if more is left, ready…}; a piece done twice changes nothing.
local run = run_of(ARGV[2])
if not get(run, 'status') then
  call('ZREM', P .. 'clearing', run.id)
  return { 0, {} }
end
return { clear(run) and 1 or 0, publish_ready() }
