-- ready-search: onestep takes the rows of a task that are due
--
-- Sent with FOR UPDATE SKIP LOCKED, which is left out here: measuring locks nothing. So the claim itself costs somewhat more,
-- since it locks every row that it passes. Source: onestep-sql 0.4.0 to 0.7.1, _claim.
--
-- @sender onestep
-- @claim
SELECT onestep_executions.*
FROM onestep_executions
WHERE onestep_executions.namespace = :namespace
  AND onestep_executions.task_name IN (:task)
  AND onestep_executions.status IN ('queued', 'retrying')
  AND onestep_executions.available_at <= :now
  AND (onestep_executions.expires_at IS NULL OR onestep_executions.expires_at > :now
    OR onestep_executions.status = 'retrying' AND (EXISTS (SELECT *
    FROM onestep_execution_attempts
    WHERE onestep_execution_attempts.execution_id = onestep_executions.id
      AND onestep_execution_attempts.attempt_no = onestep_executions.attempts
      AND onestep_execution_attempts.status = 'lease_lost')))
ORDER BY onestep_executions.available_at, onestep_executions.created_at, onestep_executions.id
LIMIT 4
