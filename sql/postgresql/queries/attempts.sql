-- attempts: every attempt of one execution, with its worker, times and error
--
-- The execution's own status and version stand beside each attempt, so that what does not agree shows. An attempt
-- that was given back unbegun is lease_lost, like one whose lease ran out.
--
-- @param id uuid!: the execution, its id with or without dashes
-- @index onestep_executions (primary key), ix_onestep_execution_attempts_execution or
-- @index uq_onestep_execution_attempts_execution_attempt
-- @cost reads one execution and its attempts
-- @json error
-- @id execution_id, attempt_id
SELECT e.id AS execution_id, e.namespace, e.task_name, e.status AS execution_status, e.version,
       a.attempt_no, a.status, a.worker_id, a.started_at, a.heartbeat_at, a.finished_at,
       round(extract(epoch FROM coalesce(a.finished_at, current_timestamp) - a.started_at)::numeric, 3) AS run_s,
         a.error, a.id AS attempt_id
FROM onestep_executions e
LEFT JOIN onestep_execution_attempts a ON a.execution_id = e.id
WHERE e.id = :id
ORDER BY a.attempt_no
LIMIT :limit
