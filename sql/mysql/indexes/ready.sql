-- ready: what a claim looks for, apart from what is finished
--
-- Begins with the status, so that a claim reads the rows that wait and none of those that have ended. The search for
-- overdue rows, which begins every claim, needs expires_at alone and finds it at the end. Counts of what waits or runs read
-- nothing else. Wants the stock claim index hidden (hide-claim): with it in sight the optimizer walks past every finished
-- row of the task as soon as some rows wait.
--
-- @serves claim, overdue search, counts, exporter
-- @writes submit 1, claim 2, heartbeat 0, complete 2
CREATE INDEX ix_onestep_executions_ready
  ON onestep_executions (status, namespace, task_name, available_at, created_at, expires_at)
  ALGORITHM=INPLACE LOCK=NONE;
