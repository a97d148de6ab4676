-- stuck-running: what runs with an old heartbeat, or has run for long
--
-- An old heartbeat means that the worker is gone or its event loop is blocked; a fresh one and a long run mean that
-- the job itself is slow. A row without its attempt (no heartbeat at all) is damaged: see inconsistencies. Next:
-- workers, attempts.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @param heartbeat_older duration = 90s: how old the last heartbeat must be
-- @param running_longer duration = 1h: or how long ago this attempt must have begun
-- @index ix_onestep_executions_lease, ix_onestep_execution_attempts_execution
-- @index or uq_onestep_execution_attempts_execution_attempt
-- @cost reads what holds a lease, and its attempts
-- @id execution_id
SELECT e.id AS execution_id, e.namespace, e.task_name, e.status, e.attempts AS attempt_no, e.worker_id,
       a.started_at, round(extract(epoch FROM current_timestamp - a.started_at)::numeric, 3) AS running_s,
       a.heartbeat_at, round(extract(epoch FROM current_timestamp - a.heartbeat_at)::numeric, 3) AS heartbeat_age_s,
       e.lease_expires_at,
       round(extract(epoch FROM e.lease_expires_at - current_timestamp)::numeric, 3) AS lease_left_s,
       CASE WHEN a.id IS NULL THEN 'attempt is missing'
            WHEN a.heartbeat_at < current_timestamp - make_interval(secs => :heartbeat_older) THEN 'heartbeat is old'
            ELSE 'runs long' END AS reason
FROM onestep_executions e
LEFT JOIN onestep_execution_attempts a ON a.execution_id = e.id AND a.attempt_no = e.attempts
WHERE e.status IN ('running', 'cancel_requested')
  AND (a.id IS NULL OR a.heartbeat_at < current_timestamp - make_interval(secs => :heartbeat_older)
    OR a.started_at < current_timestamp - make_interval(secs => :running_longer))
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
ORDER BY a.heartbeat_at, e.id
LIMIT :limit
