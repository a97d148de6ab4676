-- sizes: how large the two tables are, with their indexes
--
-- Rows are the server's own estimate. Much that is free or dead after a purge is space that the next rows will use.
-- Next: index-sizes, cleaning.
--
-- @index none: from the catalog
-- @cost reads the catalog only
SELECT CAST(t.table_name AS CHAR) AS table_name, t.table_rows AS rows_estimate, t.data_length AS table_bytes,
       t.index_length AS index_bytes, t.data_length + t.index_length AS total_bytes, NULL AS dead_rows,
       t.data_free AS free_bytes, NULL AS last_analyzed_at
FROM information_schema.tables t
WHERE t.table_schema = DATABASE() AND t.table_name IN (:executions_table, :attempts_table)
ORDER BY total_bytes DESC, table_name
LIMIT :limit
