-- cancel-lingering: cancels that were asked for some time ago and have not come through
--
-- A running job has to notice that it is to end, at its next heartbeat at the latest. What lingers does not look, or
-- its worker is gone; then the row is cancelled by a claim after its lease has run out. Next: attempts.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @param older_than duration = 2m: how long ago the cancel was asked for
-- @index ix_onestep_executions_lease, ix_onestep_execution_attempts_execution
-- @index or uq_onestep_execution_attempts_execution_attempt
-- @cost reads what holds a lease, and its attempts
-- @id execution_id
SELECT e.id AS execution_id, e.namespace, e.task_name, e.worker_id, e.cancel_requested_at,
       round(extract(epoch FROM current_timestamp - e.cancel_requested_at)::numeric, 3) AS requested_s,
         e.cancel_reason, a.heartbeat_at, e.lease_expires_at
FROM onestep_executions e
LEFT JOIN onestep_execution_attempts a ON a.execution_id = e.id AND a.attempt_no = e.attempts
WHERE e.status IN ('running', 'cancel_requested') AND e.status = 'cancel_requested'
  AND e.cancel_requested_at < current_timestamp - make_interval(secs => :older_than)
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
ORDER BY e.cancel_requested_at, e.id
LIMIT :limit
