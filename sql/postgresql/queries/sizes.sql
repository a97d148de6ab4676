-- sizes: how large the two tables are, with their indexes
--
-- Rows are the server's own estimate. Much that is free or dead after a purge is space that the next rows will use.
-- Next: index-sizes, cleaning.
--
-- @index none: from the catalog
-- @cost reads the catalog only
SELECT c.relname::text AS table_name, greatest(c.reltuples, 0)::bigint AS rows_estimate,
       pg_table_size(c.oid) AS table_bytes, pg_indexes_size(c.oid) AS index_bytes,
       pg_total_relation_size(c.oid) AS total_bytes, s.n_dead_tup AS dead_rows, CAST(NULL AS bigint) AS free_bytes,
       greatest(s.last_analyze, s.last_autoanalyze) AS last_analyzed_at
FROM pg_class c
LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
WHERE c.oid IN (to_regclass(:executions_table), to_regclass(:attempts_table))
ORDER BY total_bytes DESC, table_name
LIMIT :limit
