-- purge: the next thousand rows that retention takes
--
-- Those that ended more than thirty days ago, oldest first.
--
-- @sender opsctl
SELECT onestep_executions.id
FROM onestep_executions
WHERE onestep_executions.finished_at < :before
ORDER BY onestep_executions.finished_at, onestep_executions.id
LIMIT 1000
