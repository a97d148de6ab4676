-- workers: who holds leases, and when each was last heard of
--
-- Only workers that hold a lease are here; an idle one leaves no row. An old heartbeat with leases that have not run
-- out yet is a worker that has just died or is blocked. Next: stuck-running, expired-leases.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @index ix_onestep_executions_lease, ix_onestep_execution_attempts_execution
-- @index or uq_onestep_execution_attempts_execution_attempt
-- @cost reads what holds a lease, and its attempts
-- @limit 1000
SELECT e.namespace, e.task_name, e.worker_id, count(*) AS leases,
       count(*) FILTER (WHERE e.lease_expires_at <= current_timestamp) AS expired_leases,
       min(a.started_at) AS oldest_started_at, max(a.heartbeat_at) AS last_heartbeat_at,
       round(extract(epoch FROM current_timestamp - max(a.heartbeat_at))::numeric, 3) AS heartbeat_age_s,
       min(e.lease_expires_at) AS next_lease_expires_at
FROM onestep_executions e
LEFT JOIN onestep_execution_attempts a ON a.execution_id = e.id AND a.attempt_no = e.attempts
WHERE e.status IN ('running', 'cancel_requested')
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
GROUP BY e.namespace, e.task_name, e.worker_id
ORDER BY last_heartbeat_at, e.namespace, e.task_name, e.worker_id
LIMIT :limit
