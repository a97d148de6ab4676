-- transactions: transactions that have been open for long
--
-- One that is idle holds its locks and keeps old row versions for everybody. Ages are of the transaction, not of its
-- last statement. Next: locks, cleaning.
--
-- @param older_than duration = 10s: how long it must have been open
-- @index none: from the server's session tables
-- @cost reads the session tables of the server
-- @right pg_read_all_stats, to see what sessions of other accounts do
SELECT a.pid AS session_id, a.usename::text AS account, a.application_name AS application,
       host(a.client_addr) AS client,
       a.state, round(extract(epoch FROM current_timestamp - a.xact_start)::numeric, 3) AS age_s,
       CAST(NULL AS text) AS isolation, left(a.query, 200) AS statement
FROM pg_stat_activity a
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
  AND a.xact_start < current_timestamp - make_interval(secs => :older_than)
ORDER BY a.xact_start, a.pid
LIMIT :limit
