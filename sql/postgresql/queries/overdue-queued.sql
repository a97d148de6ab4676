-- overdue-queued: what has passed its latest start and will expire at the next claim
--
-- expires_at is the latest start. These rows are still queued or retrying because nobody has claimed since; the next
-- claim, of any task, expires up to 100 of them. A retry after a lost lease never expires, and is not shown. Next:
-- oldest-queued.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @index ix_onestep_executions_claim
-- @cost reads what is queued or retrying
-- @id execution_id
SELECT e.id AS execution_id, e.namespace, e.task_name, e.status, e.attempts, e.available_at, e.expires_at,
       round(extract(epoch FROM current_timestamp - e.expires_at)::numeric, 3) AS overdue_s
FROM onestep_executions e
LEFT JOIN onestep_execution_attempts a
  ON e.status = 'retrying' AND a.execution_id = e.id AND a.attempt_no = e.attempts AND a.status = 'lease_lost'
WHERE e.status IN ('queued', 'retrying') AND e.expires_at <= current_timestamp
  AND a.id IS NULL
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
ORDER BY e.expires_at, e.id
LIMIT :limit
