-- overdue-search: onestep looks for rows whose latest start has passed, at the beginning of every claim
--
-- For all namespaces and tasks of the pair. Source: onestep-sql 0.4.0 to 0.7.1, _expire_queued.
--
-- @sender onestep
-- @claim
SELECT onestep_executions.id, onestep_executions.version
FROM onestep_executions
WHERE onestep_executions.status IN ('queued', 'retrying')
  AND onestep_executions.expires_at IS NOT NULL
  AND onestep_executions.expires_at <= :now
  AND NOT (onestep_executions.status = 'retrying' AND (EXISTS (SELECT *
    FROM onestep_execution_attempts
    WHERE onestep_execution_attempts.execution_id = onestep_executions.id
      AND onestep_execution_attempts.attempt_no = onestep_executions.attempts
      AND onestep_execution_attempts.status = 'lease_lost')))
ORDER BY onestep_executions.expires_at, onestep_executions.id
LIMIT 100
