-- oldest-queued: how much work waits, and for how long, by namespace and task
--
-- due may begin now, later is delayed or waits for its next try. Old due work means that workers are too few, too
-- slow, down, or claim another namespace or task. An idle worker leaves no row, so that nobody is there shows here
-- alone. Next: workers.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @index none: MySQL has no index of what waits; every row is read
-- @cost reads the whole executions table
-- @limit 1000
SELECT e.namespace, e.task_name,
       CAST(SUM(CASE WHEN e.available_at <= UTC_TIMESTAMP(6) THEN 1 ELSE 0 END) AS SIGNED) AS due,
       CAST(SUM(CASE WHEN e.available_at > UTC_TIMESTAMP(6) THEN 1 ELSE 0 END) AS SIGNED) AS later,
       min(CASE WHEN e.available_at <= UTC_TIMESTAMP(6) THEN e.available_at END) AS oldest_available_at,
       ROUND(TIMESTAMPDIFF(MICROSECOND, min(CASE WHEN e.available_at <= UTC_TIMESTAMP(6) THEN e.available_at END),
         UTC_TIMESTAMP(6)) / 1000000, 3) AS oldest_age_s,
       min(CASE WHEN e.available_at > UTC_TIMESTAMP(6) THEN e.available_at END) AS next_available_at
FROM onestep_executions e
WHERE e.status IN ('queued', 'retrying')
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
-- In this order no index has them: along one, each row would be fetched by itself.
GROUP BY e.task_name, e.namespace
ORDER BY oldest_age_s DESC, e.namespace, e.task_name
LIMIT :limit
