-- retry-storm: what is being retried, by kind of error
--
-- Many of one kind say which dependency is down; the count of attempts says for how long. A lost lease leaves no new
-- error, so kind is that of the last error, or empty: see poison. Next: attempts of one of them.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @param min_attempts int = 2: only what has begun at least so often
-- @index ix_onestep_executions_claim
-- @cost reads what is queued or retrying
SELECT e.namespace, e.task_name, e.error->>'kind' AS kind, e.error->>'exception_type' AS exception_type,
       count(*) AS executions, max(e.attempts) AS max_attempts,
       min(e.created_at) AS oldest_created_at, min(e.available_at) AS next_available_at
FROM onestep_executions e
WHERE e.status IN ('queued', 'retrying') AND e.status = 'retrying' AND e.attempts >= :min_attempts
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
GROUP BY e.namespace, e.task_name, e.error->>'kind', e.error->>'exception_type'
ORDER BY count(*) DESC, e.namespace, e.task_name, kind, exception_type
LIMIT :limit
