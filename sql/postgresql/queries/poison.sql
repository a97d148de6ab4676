-- poison: what loses its lease again and again: a payload that kills its worker
--
-- Only errors of the handler count against a task's limit of attempts. A payload that makes its worker run out of
-- memory, or crash, is tried for ever and takes a worker with it each time. Cancel it through the API, then mend the
-- handler. Attempts that were given back unbegun count as lost too: look at attempts before you judge.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @param min_lost int = 2: how often the lease must have been lost
-- @index ix_onestep_executions_claim, ix_onestep_executions_lease, ix_onestep_execution_attempts_execution or
-- @index uq_onestep_execution_attempts_execution_attempt
-- @cost reads what is not finished, and the attempts of what was begun more than once
-- @id execution_id
SELECT found.execution_id, found.namespace, found.task_name, found.status, found.attempts, found.lost,
       found.last_lost_at, last.worker_id AS last_worker_id, found.available_at
FROM (
  SELECT e.id AS execution_id, e.namespace, e.task_name, e.status, e.attempts, e.available_at, count(*) AS lost,
         max(a.attempt_no) AS last_lost_no, max(a.finished_at) AS last_lost_at
  FROM (
    SELECT e.id, e.namespace, e.task_name, e.status, e.attempts, e.available_at
    FROM onestep_executions e
    WHERE e.status IN ('queued', 'retrying') AND e.attempts >= :min_lost
    -- @if namespace: AND e.namespace = :namespace
    -- @if task: AND e.task_name = :task
    UNION ALL
    SELECT e.id, e.namespace, e.task_name, e.status, e.attempts, e.available_at
    FROM onestep_executions e
    WHERE e.status IN ('running', 'cancel_requested') AND e.attempts >= :min_lost
    -- @if namespace: AND e.namespace = :namespace
    -- @if task: AND e.task_name = :task
  ) e
  JOIN onestep_execution_attempts a ON a.execution_id = e.id AND a.status = 'lease_lost'
  GROUP BY e.id, e.namespace, e.task_name, e.status, e.attempts, e.available_at
  HAVING count(*) >= :min_lost
) found
JOIN onestep_execution_attempts last ON last.execution_id = found.execution_id AND last.attempt_no = found.last_lost_no
ORDER BY found.lost DESC, found.execution_id
LIMIT :limit
