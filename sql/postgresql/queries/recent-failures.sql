-- recent-failures: what failed lately, by kind of error
--
-- Counts failed executions that were created within the time given: no stock index knows when one finished (throughput
-- counts by finish time). With a namespace this reads what was created there since then; without one it reads the
-- whole table. Next: attempts of last_execution_id.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @param since duration = 1d: how long ago they may have been created
-- @index ix_onestep_executions_list, when a namespace is given
-- @cost with a namespace, reads what was created in it since then; without one reads the whole executions table
-- @id last_execution_id
SELECT e.namespace, e.task_name, e.error->>'kind' AS kind, e.error->>'exception_type' AS exception_type,
       count(*) AS failures, max(e.finished_at) AS last_finished_at,
       (array_agg(e.id ORDER BY e.finished_at DESC NULLS LAST, e.id))[1] AS last_execution_id
FROM onestep_executions e
WHERE e.status = 'failed' AND e.created_at >= current_timestamp - make_interval(secs => :since)
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
GROUP BY e.namespace, e.task_name, e.error->>'kind', e.error->>'exception_type'
ORDER BY count(*) DESC, e.namespace, e.task_name, kind, exception_type
LIMIT :limit
