-- throughput: what has finished lately, by task and by how it ended
--
-- By finish time, whenever it was created. per_minute is over the whole time given, so a task that stopped half-way
-- shows the half; last_finished_at says when. A task that finished nothing is not here: see oldest-queued. Without the
-- operational index this reads the whole table. Next: latency, recent-failures.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @param since duration = 1h: how long ago they may have finished
-- @index ix_onestep_executions_finished
-- @cost reads what has finished since then
-- @limit 1000
SELECT e.namespace, e.task_name, count(*) AS finished,
       CAST(SUM(CASE WHEN e.status = 'succeeded' THEN 1 ELSE 0 END) AS SIGNED) AS succeeded,
       CAST(SUM(CASE WHEN e.status = 'failed' THEN 1 ELSE 0 END) AS SIGNED) AS failed,
       CAST(SUM(CASE WHEN e.status = 'cancelled' THEN 1 ELSE 0 END) AS SIGNED) AS cancelled,
       CAST(SUM(CASE WHEN e.status = 'expired' THEN 1 ELSE 0 END) AS SIGNED) AS expired,
       ROUND(count(*) * 60 / NULLIF(CAST(:since AS DECIMAL(20, 3)), 0), 3) AS per_minute,
       max(e.finished_at) AS last_finished_at
FROM onestep_executions e
WHERE e.finished_at >= UTC_TIMESTAMP(6) - INTERVAL :since SECOND
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
-- In this order no index has them: along one, every row of the table would be fetched by itself.
GROUP BY e.task_name, e.namespace
ORDER BY finished DESC, e.namespace, e.task_name
LIMIT :limit
