-- idempotency-duplicates: keys that stand twice although the unique index should forbid it
--
-- kind same: the index was lost when both were written, and one request has two executions. kind case (PostgreSQL):
-- keys that differ only in upper and lower case, which MySQL and MariaDB take for one. verify-schema says whether the
-- index is there.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @index none: every key is looked at
-- @cost reads the idempotency index from end to end
SELECT 'same' AS kind, e.namespace, e.task_name, min(e.idempotency_key) AS idempotency_key, count(*) AS executions,
       min(e.created_at) AS first_created_at, max(e.created_at) AS last_created_at
FROM (
  -- From the index alone; the rows themselves only of what is found.
  SELECT e.namespace, e.task_name, e.idempotency_key
  FROM onestep_executions e
  WHERE e.idempotency_key IS NOT NULL
    -- @if namespace: AND e.namespace = :namespace
    -- @if task: AND e.task_name = :task
  GROUP BY e.namespace, e.task_name, e.idempotency_key
  HAVING count(*) > 1
) d
JOIN onestep_executions e
  ON e.namespace = d.namespace AND e.task_name = d.task_name AND e.idempotency_key = d.idempotency_key
GROUP BY e.namespace, e.task_name, e.idempotency_key
ORDER BY count(*) DESC, e.namespace, e.task_name, idempotency_key
LIMIT :limit
