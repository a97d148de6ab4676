-- locks: who holds or waits for locks on the two tables
--
-- Waiting sessions first, with the sessions that block them. A session that blocks others and has been idle in its
-- transaction for long belongs to a program that forgot to commit. Next: transactions.
--
-- @index none: from the server's lock tables
-- @cost reads the lock tables of the server
-- @right PROCESS, SELECT on performance_schema.*
SELECT found.session_id, CAST(p.user AS CHAR) AS account, CAST(attrs.attr_value AS CHAR) AS application,
       CAST(CONCAT_WS(', ', p.command, NULLIF(p.state, '')) AS CHAR) AS state,
       TIMESTAMPDIFF(SECOND, t.trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')) AS transaction_age_s,
       CAST(found.table_name AS CHAR) AS table_name, found.lock_type, CAST(found.lock_mode AS CHAR) AS lock_mode,
         found.granted,
       (SELECT GROUP_CONCAT(DISTINCT b.processlist_id ORDER BY b.processlist_id)
        FROM performance_schema.data_lock_waits w
        JOIN performance_schema.threads h ON h.thread_id = w.requesting_thread_id
        JOIN performance_schema.threads b ON b.thread_id = w.blocking_thread_id
        WHERE h.processlist_id = found.session_id) AS blocked_by,
       LEFT(CAST(p.info AS CHAR), 200) AS statement
-- trx_started is in the zone of the server's machine, whatever the session's is.
FROM (
  SELECT h.processlist_id AS session_id, l.object_name AS table_name, 'row' AS lock_type, l.lock_mode,
         l.lock_status = 'GRANTED' AS granted
  FROM performance_schema.data_locks l
  JOIN performance_schema.threads h ON h.thread_id = l.thread_id
  WHERE l.object_schema = DATABASE() AND l.object_name IN (:executions_table, :attempts_table)
  GROUP BY session_id, table_name, lock_mode, granted
  UNION ALL
  SELECT h.processlist_id, m.object_name, 'metadata', m.lock_type, m.lock_status = 'GRANTED'
  FROM performance_schema.metadata_locks m
  JOIN performance_schema.threads h ON h.thread_id = m.owner_thread_id
  WHERE m.object_type = 'TABLE' AND m.object_schema = DATABASE()
    AND m.object_name IN (:executions_table, :attempts_table)
  GROUP BY h.processlist_id, m.object_name, m.lock_type, m.lock_status
) found
JOIN information_schema.processlist p ON p.id = found.session_id
LEFT JOIN information_schema.innodb_trx t ON t.trx_mysql_thread_id = found.session_id
LEFT JOIN performance_schema.session_connect_attrs attrs
  ON attrs.processlist_id = found.session_id AND attrs.attr_name = 'program_name'
WHERE found.session_id <> CONNECTION_ID()
ORDER BY found.granted, transaction_age_s DESC, found.session_id, table_name, lock_mode
LIMIT :limit
