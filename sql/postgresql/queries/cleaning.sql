-- cleaning: what keeps the server from removing dead row versions
--
-- VACUUM removes a dead row only when no snapshot can see it any more. The oldest holder is first; a forgotten
-- prepared transaction and an abandoned replication slot hold it back for ever, and tables and indexes grow
-- meanwhile. The last rows say how many dead rows the two tables have now, and when they were last cleaned.
--
-- @index none: from the server's session tables
-- @cost reads the session tables of the server
-- @right pg_read_all_stats, to see the sessions of other accounts
SELECT found.kind, found.session_id_or_name, found.account, found.state, found.age_s, found.holds_back,
       found.statement
FROM (
  SELECT 1 AS place, 'session' AS kind, a.pid::text AS session_id_or_name, a.usename::text AS account, a.state,
         round(extract(epoch FROM current_timestamp - a.xact_start)::numeric, 3) AS age_s,
         greatest(age(a.backend_xmin), age(a.backend_xid)) AS transactions,
         greatest(age(a.backend_xmin), age(a.backend_xid)) || ' transactions' AS holds_back,
           left(a.query, 200) AS statement
  FROM pg_stat_activity a
  WHERE (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL) AND a.pid <> pg_backend_pid()
    AND a.backend_type <> 'walsender'
  UNION ALL
  SELECT 1, 'prepared transaction', p.gid, p.owner::text, 'prepared',
         round(extract(epoch FROM current_timestamp - p.prepared)::numeric, 3), age(p.transaction),
         age(p.transaction) || ' transactions', NULL
  FROM pg_prepared_xacts p
  UNION ALL
  SELECT 1, 'replication slot', s.slot_name::text, NULL, CASE WHEN s.active THEN 'active' ELSE 'not in use' END, NULL,
         greatest(age(s.xmin), age(s.catalog_xmin)), greatest(age(s.xmin), age(s.catalog_xmin)) || ' transactions',
           NULL
  FROM pg_replication_slots s
  WHERE s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL
  UNION ALL
  SELECT 1, 'standby', coalesce(r.application_name, r.pid::text), r.usename::text, r.state, NULL, age(r.backend_xmin),
         age(r.backend_xmin) || ' transactions', NULL
  FROM pg_stat_replication r
  WHERE r.backend_xmin IS NOT NULL
  UNION ALL
  SELECT 2, 'dead rows', c.relname::text, NULL,
         CASE WHEN s.last_clean IS NULL
           THEN 'never cleaned' ELSE 'last cleaned ' || to_char(s.last_clean, 'YYYY-MM-DD HH24:MI:SS') END,
         round(extract(epoch FROM current_timestamp - s.last_clean)::numeric, 3), s.n_dead_tup,
           s.n_dead_tup || ' dead rows, ' || s.n_live_tup || ' live', NULL
  FROM pg_class c
  JOIN (SELECT relid, n_dead_tup, n_live_tup, greatest(last_vacuum, last_autovacuum) AS last_clean
        FROM pg_stat_all_tables) s ON s.relid = c.oid
  WHERE c.oid IN (to_regclass(:executions_table), to_regclass(:attempts_table))
) found
ORDER BY found.place, found.transactions DESC NULLS LAST, found.session_id_or_name
LIMIT :limit
