-- list-failed: the first page of what failed of a task, fifty rows
--
-- Source: onestep-sql 0.4.0 to 0.7.1, _list with a task and a status.
--
-- @sender onestep
SELECT onestep_executions.*
FROM onestep_executions
WHERE onestep_executions.namespace = :namespace
  AND onestep_executions.task_name = :task
  AND onestep_executions.status = 'failed'
ORDER BY onestep_executions.created_at DESC, onestep_executions.id DESC
LIMIT 51
