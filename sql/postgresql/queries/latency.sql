-- latency: how long tasks waited and ran, as percentiles of what has finished lately
--
-- wait is from when it could first begin to its first start: too few workers, or a slow claim (see claim-cost). Of one
-- that was retried that moment is no longer stored: it counts from its creation, any delay included. run is from the
-- first start to the end, with all retries and what lies between them. Only what began is counted, however it ended. A
-- percentile is a time that really occurred: of p90_s, nine in ten were no longer. Without the operational index this
-- reads the whole table. Next: throughput, claim-cost.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @param status text: only what ended so: succeeded, failed, cancelled or expired
-- @param since duration = 1h: how long ago they may have finished
-- @index ix_onestep_executions_finished
-- @cost reads what has finished since then, and sorts it
-- @limit 1000
SELECT ran.namespace, ran.task_name, count(*) AS runs,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY ran.wait_s) AS wait_p50_s,
       percentile_disc(0.9) WITHIN GROUP (ORDER BY ran.wait_s) AS wait_p90_s,
       percentile_disc(0.99) WITHIN GROUP (ORDER BY ran.wait_s) AS wait_p99_s,
       max(ran.wait_s) AS wait_max_s,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY ran.run_s) AS run_p50_s,
       percentile_disc(0.9) WITHIN GROUP (ORDER BY ran.run_s) AS run_p90_s,
       percentile_disc(0.99) WITHIN GROUP (ORDER BY ran.run_s) AS run_p99_s,
       max(ran.run_s) AS run_max_s
FROM (
  SELECT e.namespace, e.task_name,
         -- What lies behind the first start is when the next try could begin.
         round(greatest(0, extract(epoch FROM e.started_at
             - CASE WHEN e.available_at <= e.started_at THEN e.available_at ELSE e.created_at END)::numeric),
           3) AS wait_s,
         round(greatest(0, extract(epoch FROM e.finished_at - e.started_at)::numeric), 3) AS run_s
  FROM onestep_executions e
  WHERE e.finished_at >= current_timestamp - make_interval(secs => :since) AND e.started_at IS NOT NULL
    -- @if namespace: AND e.namespace = :namespace
    -- @if task: AND e.task_name = :task
    -- @if status: AND e.status = :status
) ran
GROUP BY ran.namespace, ran.task_name
ORDER BY wait_p90_s DESC, ran.namespace, ran.task_name
LIMIT :limit
