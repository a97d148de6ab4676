-- index-sizes: how large each index of the two tables is, and how often it is used
--
-- uses counts since the server, or its statistics, began anew: an index that is never used on this server may be one
-- that a replica or a monthly job needs. Do not drop one of onestep's own: verify-schema says which these are.
--
-- @index none: from the catalog
-- @cost reads the catalog only
SELECT t.relname::text AS table_name, i.relname::text AS index_name, pg_relation_size(i.oid) AS index_bytes,
       x.indisunique AS is_unique, x.indisvalid AS is_valid, s.idx_scan AS uses
FROM pg_index x
JOIN pg_class i ON i.oid = x.indexrelid
JOIN pg_class t ON t.oid = x.indrelid
LEFT JOIN pg_stat_all_indexes s ON s.indexrelid = i.oid
WHERE x.indrelid IN (to_regclass(:executions_table), to_regclass(:attempts_table))
ORDER BY index_bytes DESC, index_name
LIMIT :limit
