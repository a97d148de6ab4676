-- locks: who holds or waits for locks on the two tables
--
-- Waiting sessions first, with the sessions that block them. A session that blocks others and has been idle in its
-- transaction for long belongs to a program that forgot to commit. MariaDB shows only row locks that somebody waits
-- for, and of a wait for a metadata lock not whose it is: transactions shows who has been open for long. Next:
-- transactions.
--
-- @index none: from the server's lock tables
-- @cost reads the lock tables of the server
-- @right PROCESS
SELECT found.session_id, CAST(p.user AS CHAR) AS account, NULL AS application,
       CAST(CONCAT_WS(', ', p.command, NULLIF(p.state, '')) AS CHAR) AS state,
       TIMESTAMPDIFF(SECOND, t.trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')) AS transaction_age_s,
       CAST(found.table_name AS CHAR) AS table_name, found.lock_type, CAST(found.lock_mode AS CHAR) AS lock_mode,
         found.granted,
       (SELECT GROUP_CONCAT(DISTINCT b.trx_mysql_thread_id ORDER BY b.trx_mysql_thread_id)
        FROM information_schema.innodb_lock_waits w
        JOIN information_schema.innodb_trx r ON r.trx_id = w.requesting_trx_id
        JOIN information_schema.innodb_trx b ON b.trx_id = w.blocking_trx_id
        WHERE r.trx_mysql_thread_id = found.session_id) AS blocked_by,
       LEFT(CAST(p.info AS CHAR), 200) AS statement
-- trx_started is in the zone of the server's machine, whatever the session's is.
FROM (
  SELECT x.trx_mysql_thread_id AS session_id,
         CASE l.lock_table WHEN CONCAT('`', DATABASE(), '`.`', :executions_table, '`') THEN :executions_table
                           ELSE :attempts_table END AS table_name,
         'row' AS lock_type, l.lock_mode, COALESCE(x.trx_requested_lock_id <> l.lock_id, 1) AS granted
  FROM information_schema.innodb_locks l
  JOIN information_schema.innodb_trx x ON x.trx_id = l.lock_trx_id
  WHERE l.lock_table IN (CONCAT('`', DATABASE(), '`.`', :executions_table, '`'),
                         CONCAT('`', DATABASE(), '`.`', :attempts_table, '`'))
  GROUP BY session_id, table_name, l.lock_mode, granted
  UNION ALL
  SELECT w.id, CASE WHEN w.info LIKE CONCAT('%', :attempts_table, '%')
         THEN :attempts_table ELSE :executions_table END,
         'metadata', NULL, 0
  FROM information_schema.processlist w
  WHERE w.db = DATABASE() AND w.state LIKE 'Waiting for table%metadata lock'
    AND (w.info LIKE CONCAT('%', :executions_table, '%') OR w.info LIKE CONCAT('%', :attempts_table, '%'))
) found
JOIN information_schema.processlist p ON p.id = found.session_id
LEFT JOIN information_schema.innodb_trx t ON t.trx_mysql_thread_id = found.session_id
WHERE found.session_id <> CONNECTION_ID()
ORDER BY found.granted, transaction_age_s DESC, found.session_id, table_name, lock_mode
LIMIT :limit
