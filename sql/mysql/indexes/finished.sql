-- finished: rows by status and the time when they ended
--
-- For retention, which looks for the oldest of a status, and for throughput, latencies and the exporter, which look for the
-- newest. No claim needs it.
--
-- @serves purge, throughput, exporter
-- @writes submit 1, claim 2, heartbeat 0, complete 2
CREATE INDEX ix_onestep_executions_finished
  ON onestep_executions (status, finished_at)
  ALGORITHM=INPLACE LOCK=NONE;
