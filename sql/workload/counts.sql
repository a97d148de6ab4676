-- counts: how many executions are in each status, by namespace and task
--
-- What opsctl query run status-counts and a dashboard ask for.
--
-- @sender opsctl
SELECT onestep_executions.namespace, onestep_executions.task_name, onestep_executions.status, count(*) AS executions
FROM onestep_executions
GROUP BY onestep_executions.namespace, onestep_executions.task_name, onestep_executions.status
