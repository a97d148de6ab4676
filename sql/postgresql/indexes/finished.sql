-- finished: rows by status and the time when they ended
--
-- For retention, which looks for the oldest of a status, and for throughput, latencies and the exporter, which look for the
-- newest. No claim needs it.
--
-- @serves purge, throughput, exporter
-- @writes submit 0, claim 0, heartbeat 0, complete 1
CREATE INDEX CONCURRENTLY ix_onestep_executions_finished
  ON onestep_executions (status, finished_at)
  WHERE finished_at IS NOT NULL;
