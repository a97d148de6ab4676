-- cleaning: what keeps the server from removing dead row versions
--
-- Purge removes an old row version only when no transaction can see it any more. The first row is the length of the
-- history list: thousands are usual, hundreds of thousands that grow make every read slower. Below it the
-- transactions that can hold it back, the oldest first.
--
-- @index none: from the server's session tables
-- @cost reads the session tables of the server
-- @right PROCESS
SELECT found.kind, found.session_id_or_name, found.account, found.state, found.age_s, found.holds_back,
       found.statement
-- trx_started is in the zone of the server's machine, whatever the session's is.
FROM (
  SELECT 1 AS place, 'history list' AS kind, NULL AS session_id_or_name, NULL AS account, NULL AS state,
         NULL AS age_s,
         CONCAT(m.variable_value, ' transactions not purged') AS holds_back, NULL AS statement
  FROM information_schema.global_status m
  WHERE m.variable_name = 'INNODB_HISTORY_LIST_LENGTH'
  UNION ALL
  SELECT 2, 'transaction', CAST(t.trx_mysql_thread_id AS CHAR), CAST(p.user AS CHAR),
         CAST(CONCAT_WS(', ', p.command, NULLIF(t.trx_state, '')) AS CHAR),
         TIMESTAMPDIFF(SECOND, t.trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')),
         CAST(t.trx_isolation_level AS CHAR), LEFT(CAST(COALESCE(t.trx_query, p.info) AS CHAR), 200)
  FROM information_schema.innodb_trx t
  LEFT JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
  WHERE t.trx_mysql_thread_id <> CONNECTION_ID()
) found
ORDER BY found.place, found.age_s DESC, found.session_id_or_name
LIMIT :limit
