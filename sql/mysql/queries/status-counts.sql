-- status-counts: how many executions are in each status, by namespace and task
--
-- The first look. Live rows (queued, running, retrying, cancel_requested) should come and go; one of them that only
-- grows is what to ask about next: oldest-queued, stuck-running, retry-storm, cancel-lingering.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @index none: every row is counted
-- @cost reads the whole executions table
-- @limit 1000
SELECT e.namespace, e.task_name, e.status, count(*) AS executions,
       min(e.created_at) AS oldest_created_at, max(e.updated_at) AS last_updated_at
FROM onestep_executions e
WHERE 1 = 1
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
GROUP BY e.namespace, e.task_name, e.status
ORDER BY e.namespace, e.task_name, e.status
LIMIT :limit
