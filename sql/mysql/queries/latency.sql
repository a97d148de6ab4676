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
SELECT p.namespace, p.task_name, max(p.runs) AS runs,
-- The first place that has so many of all behind it. A product, since a quotient would be rounded twice.
       ROUND(0.000001 * min(CASE WHEN p.wait_place >= 0.5 * p.runs THEN p.wait_us END), 3) AS wait_p50_s,
       ROUND(0.000001 * min(CASE WHEN p.wait_place >= 0.9 * p.runs THEN p.wait_us END), 3) AS wait_p90_s,
       ROUND(0.000001 * min(CASE WHEN p.wait_place >= 0.99 * p.runs THEN p.wait_us END), 3) AS wait_p99_s,
       ROUND(0.000001 * max(p.wait_us), 3) AS wait_max_s,
       ROUND(0.000001 * min(CASE WHEN p.run_place >= 0.5 * p.runs THEN p.run_us END), 3) AS run_p50_s,
       ROUND(0.000001 * min(CASE WHEN p.run_place >= 0.9 * p.runs THEN p.run_us END), 3) AS run_p90_s,
       ROUND(0.000001 * min(CASE WHEN p.run_place >= 0.99 * p.runs THEN p.run_us END), 3) AS run_p99_s,
       ROUND(0.000001 * max(p.run_us), 3) AS run_max_s
FROM (
  SELECT ran.namespace, ran.task_name, ran.wait_us, ran.run_us,
         count(*) OVER (PARTITION BY ran.task_name, ran.namespace) AS runs,
         row_number() OVER (PARTITION BY ran.task_name, ran.namespace ORDER BY ran.wait_us) AS wait_place,
         row_number() OVER (PARTITION BY ran.task_name, ran.namespace ORDER BY ran.run_us) AS run_place
  FROM (
    SELECT e.namespace, e.task_name,
           -- What lies behind the first start is when the next try could begin.
           GREATEST(0, TIMESTAMPDIFF(MICROSECOND,
             CASE WHEN e.available_at <= e.started_at THEN e.available_at ELSE e.created_at END,
             e.started_at)) AS wait_us,
           GREATEST(0, TIMESTAMPDIFF(MICROSECOND, e.started_at, e.finished_at)) AS run_us
    FROM onestep_executions e
    WHERE e.finished_at >= UTC_TIMESTAMP(6) - INTERVAL :since SECOND AND e.started_at IS NOT NULL
      -- @if namespace: AND e.namespace = :namespace
      -- @if task: AND e.task_name = :task
      -- @if status: AND e.status = :status
  ) ran
) p
GROUP BY p.namespace, p.task_name
ORDER BY wait_p90_s DESC, p.namespace, p.task_name
LIMIT :limit
