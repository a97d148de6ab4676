-- claim-cost: how many rows a claim reads in vain, by namespace and task
--
-- With the stock indexes alone; each idle worker reads both once a poll. passes_stock is what a claim of the task walks
-- past before it comes to the first row that is due, or knows that nothing is: what has ended or runs and could begin
-- by now. That is the most: a row that waits out of turn is found sooner. On PostgreSQL it is 0, since the claim index
-- holds only what waits, and a task of which nothing waits is not here. overdue_reads_stock is what every claim reads
-- besides, of any task, to find rows whose latest start has passed: the whole table, on PostgreSQL all that waits in
-- the pair. The operational indexes spare both. Next: opsctl tune advise.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @index none: every row is counted, from ix_onestep_executions_ready where it is there
-- @cost reads the whole executions table, or that index from end to end
-- @limit 1000
SELECT found.namespace, found.task_name, found.waiting, found.due, found.passes_stock, found.overdue_reads_stock
FROM (
  SELECT e.namespace, e.task_name,
         CAST(SUM(CASE WHEN e.status IN ('queued', 'retrying') THEN 1 ELSE 0 END) AS SIGNED) AS waiting,
         CAST(SUM(CASE WHEN e.status IN ('queued', 'retrying') AND e.available_at <= UTC_TIMESTAMP(6)
           THEN 1 ELSE 0 END) AS SIGNED) AS due,
         CAST(SUM(CASE WHEN e.status NOT IN ('queued', 'retrying') AND e.available_at <= UTC_TIMESTAMP(6)
           THEN 1 ELSE 0 END) AS SIGNED) AS passes_stock,
         -- Of the whole pair, so the namespace and task asked for are looked at only behind it.
         CAST(SUM(count(*)) OVER () AS SIGNED) AS overdue_reads_stock
  FROM onestep_executions e
  -- In this order no index has them: along one, each row would be fetched by itself.
  GROUP BY e.task_name, e.namespace
) found
WHERE 1 = 1
  -- @if namespace: AND found.namespace = :namespace
  -- @if task: AND found.task_name = :task
ORDER BY found.passes_stock DESC, found.namespace, found.task_name
LIMIT :limit
