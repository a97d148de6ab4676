-- finished: rows by the time when they ended
--
-- For retention, which looks for the oldest, and for throughput, latencies and the exporter, which look for the newest. No
-- claim needs it. The status is left out on purpose: beginning with it, it would draw the search for overdue rows to itself.
--
-- @serves purge, throughput, exporter
-- @writes submit 1, claim 0, heartbeat 0, complete 2
CREATE INDEX ix_onestep_executions_finished
  ON onestep_executions (finished_at)
  ALGORITHM=INPLACE LOCK=NONE;
