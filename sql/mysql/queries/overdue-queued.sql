-- overdue-queued: what has passed its latest start and will expire at the next claim
--
-- expires_at is the latest start. These rows are still queued or retrying because nobody has claimed since; the next
-- claim, of any task, expires up to 100 of them. A retry after a lost lease never expires, and is not shown. Next:
-- oldest-queued.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @index none: MySQL has no index of what waits; every row is read
-- @cost reads the whole executions table
-- @id execution_id
SELECT e.id AS execution_id, e.namespace, e.task_name, e.status, e.attempts, e.available_at, e.expires_at,
       ROUND(TIMESTAMPDIFF(MICROSECOND, e.expires_at, UTC_TIMESTAMP(6)) / 1000000, 3) AS overdue_s
FROM onestep_executions e
LEFT JOIN onestep_execution_attempts a
  ON e.status = 'retrying' AND a.execution_id = e.id AND a.attempt_no = e.attempts AND a.status = 'lease_lost'
WHERE e.status IN ('queued', 'retrying') AND e.expires_at <= UTC_TIMESTAMP(6)
  AND a.id IS NULL
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
ORDER BY e.expires_at, e.id
LIMIT :limit
