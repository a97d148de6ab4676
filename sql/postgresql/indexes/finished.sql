-- finished: rows by the time when they ended
--
-- For retention, which looks for the oldest, and for throughput, latencies and the exporter, which look for the newest. No
-- claim needs it, and only rows that have ended are in it.
--
-- @serves purge, throughput, exporter
-- @writes submit 0, claim 0, heartbeat 0, complete 1
CREATE INDEX CONCURRENTLY ix_onestep_executions_finished
  ON onestep_executions (finished_at)
  WHERE finished_at IS NOT NULL;
