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
-- @index ix_onestep_executions_claim
-- @cost reads what is queued or retrying
-- @limit 1000
SELECT found.namespace, found.task_name, found.waiting, found.due, CAST(0 AS bigint) AS passes_stock,
       found.overdue_reads_stock
FROM (
  SELECT e.namespace, e.task_name, count(*) AS waiting,
         count(*) FILTER (WHERE e.available_at <= current_timestamp) AS due,
         CAST(sum(count(*)) OVER () AS bigint) AS overdue_reads_stock
  FROM onestep_executions e
  WHERE e.status IN ('queued', 'retrying')
  GROUP BY e.namespace, e.task_name
) found
WHERE 1 = 1
  -- @if namespace: AND found.namespace = :namespace
  -- @if task: AND found.task_name = :task
ORDER BY found.waiting DESC, found.namespace, found.task_name
LIMIT :limit
