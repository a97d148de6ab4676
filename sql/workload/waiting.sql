-- waiting: how many executions wait, by namespace and task
--
-- What an exporter asks for every few seconds.
--
-- @sender opsctl
SELECT onestep_executions.namespace, onestep_executions.task_name, onestep_executions.status, count(*) AS executions
FROM onestep_executions
WHERE onestep_executions.status IN ('queued', 'retrying')
GROUP BY onestep_executions.namespace, onestep_executions.task_name, onestep_executions.status
