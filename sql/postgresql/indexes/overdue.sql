-- overdue: the search for rows whose latest start has passed, however many wait
--
-- Without it that search, which begins every claim, reads every row that waits. It holds only rows that wait and have a
-- latest start, so it stays small.
--
-- @serves overdue search
-- @writes submit 1, claim 0, heartbeat 0, complete 0
CREATE INDEX CONCURRENTLY ix_onestep_executions_overdue
  ON onestep_executions (expires_at, id)
  WHERE status IN ('queued', 'retrying') AND expires_at IS NOT NULL;
