-- inconsistencies: rows that the state machine of onestep forbids
--
-- Empty is right. What is here was written by hand, came from a restore that mixed two moments, or shows a bug.
-- Problems are separated by semicolons. A row that runs without a lease is the worst: no claim ever finds it. Times
-- may be up to five minutes apart, as machines' clocks are.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @index none: every row and every attempt is looked at
-- @cost reads the whole executions and attempts tables
-- @id execution_id
SELECT found.execution_id, found.namespace, found.task_name, found.status, found.attempts, found.problems,
       found.updated_at
FROM (
  SELECT e.id AS execution_id, e.namespace, e.task_name, e.status, e.attempts, e.updated_at, concat_ws('; ',
    CASE WHEN e.status IN ('running', 'cancel_requested')
      AND (e.lease_token IS NULL OR e.lease_expires_at IS NULL OR e.worker_id IS NULL)
      THEN 'runs without a whole lease: nobody will ever take it back' END,
    CASE WHEN e.status NOT IN ('running', 'cancel_requested')
      AND (e.lease_token IS NOT NULL OR e.lease_expires_at IS NOT NULL OR e.worker_id IS NOT NULL)
      THEN 'does not run and holds a lease' END,
    CASE WHEN e.status IN ('succeeded', 'failed', 'cancelled', 'expired') AND e.finished_at IS NULL
      THEN 'has ended without finished_at' END,
    CASE WHEN e.status IN ('queued', 'running', 'retrying', 'cancel_requested') AND e.finished_at IS NOT NULL
      THEN 'has finished_at and has not ended' END,
    CASE WHEN e.status = 'cancel_requested' AND e.cancel_requested_at IS NULL
      THEN 'is to be cancelled without cancel_requested_at' END,
    CASE WHEN e.status IN ('queued', 'running', 'retrying', 'expired') AND e.cancel_requested_at IS NOT NULL
      THEN 'has cancel_requested_at and is not to be cancelled' END,
    CASE WHEN e.status IN ('running', 'cancel_requested') AND e.attempts < 1 THEN 'runs and was never begun' END,
    CASE WHEN e.status IN ('succeeded', 'failed', 'retrying') AND e.attempts < 1
      THEN 'has a result of a run and was never begun' END,
    CASE WHEN (e.attempts > 0) <> (e.started_at IS NOT NULL) THEN 'attempts and started_at disagree' END,
    CASE WHEN e.attempts <> count(a.id) THEN 'counts another number of attempts than there are' END,
    CASE WHEN e.status IN ('running', 'cancel_requested') AND e.attempts > 0
      AND coalesce(max(a.attempt_no = e.attempts), 0) = 0
      THEN 'its latest attempt is missing' END,
    CASE WHEN e.status IN ('running', 'cancel_requested') AND max(a.attempt_no = e.attempts AND a.status <> 'running')
      THEN 'runs and its latest attempt does not' END,
    CASE WHEN e.status IN ('running', 'cancel_requested')
      AND max(a.attempt_no = e.attempts AND a.lease_token <> e.lease_token)
      THEN 'its latest attempt has another lease' END,
    CASE WHEN max(a.status = 'running'
      AND NOT (e.status IN ('running', 'cancel_requested') AND a.attempt_no = e.attempts))
      THEN 'has an attempt that runs beside it' END,
    CASE WHEN e.finished_at < e.started_at - INTERVAL 5 MINUTE OR e.finished_at < e.created_at - INTERVAL 5 MINUTE
      OR e.started_at < e.created_at - INTERVAL 5 MINUTE
      THEN 'its times are out of order' END,
    CASE WHEN e.updated_at > UTC_TIMESTAMP(6) + INTERVAL 5 MINUTE
      OR e.created_at > UTC_TIMESTAMP(6) + INTERVAL 5 MINUTE OR e.finished_at > UTC_TIMESTAMP(6) + INTERVAL 5 MINUTE
      THEN 'has a time in the future' END,
    CASE WHEN e.status NOT IN ('succeeded') AND (e.result IS NOT NULL AND JSON_TYPE(e.result) <> 'NULL')
      THEN 'has a result and has not succeeded' END,
    CASE WHEN e.status = 'succeeded' AND (e.error IS NOT NULL AND JSON_TYPE(e.error) <> 'NULL')
      THEN 'has succeeded with an error' END) AS problems
  FROM onestep_executions e
  LEFT JOIN onestep_execution_attempts a ON a.execution_id = e.id
  WHERE 1 = 1
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
  GROUP BY e.id
  HAVING problems <> ''
) found
ORDER BY found.updated_at DESC, found.execution_id
LIMIT :limit
