-- list: the first page of a namespace, fifty rows
--
-- Source: onestep-sql 0.4.0 to 0.7.1, _list.
--
-- @sender onestep
SELECT onestep_executions.*
FROM onestep_executions
WHERE onestep_executions.namespace = :namespace
ORDER BY onestep_executions.created_at DESC, onestep_executions.id DESC
LIMIT 51
