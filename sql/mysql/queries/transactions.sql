-- transactions: transactions that have been open for long
--
-- One that is idle holds its locks and keeps old row versions for everybody. Ages are of the transaction, not of its
-- last statement. Next: locks, cleaning.
--
-- @param older_than duration = 10s: how long it must have been open
-- @index none: from the server's session tables
-- @cost reads the session tables of the server
-- @right PROCESS, SELECT on performance_schema.session_connect_attrs
SELECT t.trx_mysql_thread_id AS session_id, CAST(p.user AS CHAR) AS account,
       CAST(attrs.attr_value AS CHAR) AS application,
       CAST(p.host AS CHAR) AS client, CAST(CONCAT_WS(', ', p.command, NULLIF(t.trx_state, '')) AS CHAR) AS state,
       TIMESTAMPDIFF(SECOND, t.trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')) AS age_s,
       CAST(t.trx_isolation_level AS CHAR) AS isolation,
         LEFT(CAST(COALESCE(t.trx_query, p.info) AS CHAR), 200) AS statement
-- trx_started is in the zone of the server's machine, whatever the session's is.
FROM information_schema.innodb_trx t
LEFT JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
LEFT JOIN performance_schema.session_connect_attrs attrs
  ON attrs.processlist_id = t.trx_mysql_thread_id AND attrs.attr_name = 'program_name'
WHERE (p.db = DATABASE() OR p.db IS NULL) AND t.trx_mysql_thread_id <> CONNECTION_ID()
  AND TIMESTAMPDIFF(SECOND, t.trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')) >= :older_than
ORDER BY age_s DESC, session_id
LIMIT :limit
