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
       count(*) FILTER (WHERE e.status = 'succeeded') AS succeeded,
       count(*) FILTER (WHERE e.status = 'failed') AS failed,
       count(*) FILTER (WHERE e.status = 'cancelled') AS cancelled,
       count(*) FILTER (WHERE e.status = 'expired') AS expired,
       round(count(*) * 60 / NULLIF(CAST(:since AS numeric), 0), 3) AS per_minute,
       max(e.finished_at) AS last_finished_at
FROM onestep_executions e
WHERE e.finished_at >= current_timestamp - make_interval(secs => :since)
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
GROUP BY e.namespace, e.task_name
ORDER BY finished DESC, e.namespace, e.task_name
LIMIT :limit
