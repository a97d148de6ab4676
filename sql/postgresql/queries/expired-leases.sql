-- expired-leases: leases that have run out and that nobody has taken back
--
-- Nobody cleans up but the next claim, so with workers alive a row stays here for seconds only. If it stays longer,
-- nobody claims from these tables: see workers and oldest-queued. next_status is what the next claim makes of it.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @index ix_onestep_executions_lease
-- @cost reads leases that have run out
-- @id execution_id
SELECT e.id AS execution_id, e.namespace, e.task_name, e.status, e.attempts, e.worker_id,
       e.lease_expires_at, round(extract(epoch FROM current_timestamp - e.lease_expires_at)::numeric, 3) AS expired_s,
       CASE e.status WHEN 'running' THEN 'retrying' ELSE 'cancelled' END AS next_status
FROM onestep_executions e
WHERE e.status IN ('running', 'cancel_requested') AND e.lease_expires_at <= current_timestamp
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
ORDER BY e.lease_expires_at, e.id
LIMIT :limit
