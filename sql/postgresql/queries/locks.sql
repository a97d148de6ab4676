-- locks: who holds or waits for locks on the two tables
--
-- Waiting sessions first, with the sessions that block them. A session that blocks others and has been idle in its
-- transaction for long belongs to a program that forgot to commit. Next: transactions.
--
-- @index none: from the server's lock tables
-- @cost reads the lock tables of the server
-- @right pg_read_all_stats, to see what sessions of other accounts do
SELECT l.pid AS session_id, a.usename::text AS account, a.application_name AS application, a.state,
       round(extract(epoch FROM current_timestamp - a.xact_start)::numeric, 3) AS transaction_age_s,
         c.relname::text AS table_name,
       l.locktype AS lock_type, l.mode AS lock_mode, l.granted,
       array_to_string(CASE WHEN NOT l.granted THEN pg_blocking_pids(l.pid) END, ',') AS blocked_by,
       left(a.query, 200) AS statement
FROM (
  SELECT DISTINCT l.pid, l.locktype, l.mode, l.granted, w.relation
  FROM pg_locks l
  -- A session that waits for a row waits for the transaction that holds it, and has a lock on the row's table.
  JOIN pg_locks w ON w.pid = l.pid AND w.locktype = 'relation' AND w.database = (
    SELECT oid FROM pg_database WHERE datname = current_database())
  WHERE (l.locktype IN ('relation', 'tuple') AND l.relation = w.relation AND l.database = w.database)
     OR (l.locktype = 'transactionid' AND NOT l.granted)
) l
JOIN pg_class c ON c.oid = l.relation AND c.oid IN (to_regclass(:executions_table), to_regclass(:attempts_table))
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.pid <> pg_backend_pid()
ORDER BY l.granted, transaction_age_s DESC NULLS LAST, l.pid, table_name, lock_mode
LIMIT :limit
