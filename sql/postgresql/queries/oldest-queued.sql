-- oldest-queued: how much work waits, and for how long, by namespace and task
--
-- due may begin now, later is delayed or waits for its next try. Old due work means that workers are too few, too
-- slow, down, or claim another namespace or task. An idle worker leaves no row, so that nobody is there shows here
-- alone. Next: workers.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @index ix_onestep_executions_claim
-- @cost reads what is queued or retrying
-- @limit 1000
SELECT e.namespace, e.task_name,
       count(*) FILTER (WHERE e.available_at <= current_timestamp) AS due,
       count(*) FILTER (WHERE e.available_at > current_timestamp) AS later,
       min(CASE WHEN e.available_at <= current_timestamp THEN e.available_at END) AS oldest_available_at,
       round(extract(epoch FROM current_timestamp
         - min(CASE WHEN e.available_at <= current_timestamp THEN e.available_at END))::numeric, 3) AS oldest_age_s,
       min(CASE WHEN e.available_at > current_timestamp THEN e.available_at END) AS next_available_at
FROM onestep_executions e
WHERE e.status IN ('queued', 'retrying')
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
GROUP BY e.namespace, e.task_name
ORDER BY oldest_age_s DESC NULLS LAST, e.namespace, e.task_name
LIMIT :limit
