-- overdue: the search for rows whose latest start has passed, however many wait
--
-- Without it that search reads every row that waits from the index `ready`: a third of a microsecond for each, in every
-- poll of every worker. It pays only where tens of thousands wait for long. created_at keeps the entries of finished rows
-- in the order in which they are written.
--
-- @optional
-- @serves overdue search
-- @writes submit 1, claim 2, heartbeat 0, complete 2
CREATE INDEX ix_onestep_executions_overdue
  ON onestep_executions (status, expires_at, created_at)
  ALGORITHM=INPLACE LOCK=NONE;
