-- index-sizes: how large each index of the two tables is, and how often it is used
--
-- uses counts since the server, or its statistics, began anew: an index that is never used on this server may be one
-- that a replica or a monthly job needs. Do not drop one of onestep's own: verify-schema says which these are.
--
-- @index none: from the catalog
-- @cost reads the catalog only
-- @right SELECT on mysql.innodb_index_stats and performance_schema.table_io_waits_summary_by_index_usage
SELECT CAST(s.table_name AS CHAR) AS table_name, CAST(s.index_name AS CHAR) AS index_name,
       CAST(s.stat_value * @@innodb_page_size AS SIGNED) AS index_bytes,
       (SELECT 1 - min(x.non_unique) FROM information_schema.statistics x
        WHERE x.table_schema = DATABASE() AND x.table_name = s.table_name AND x.index_name = s.index_name)
          AS is_unique,
       1 AS is_valid, u.count_star AS uses
FROM mysql.innodb_index_stats s
LEFT JOIN performance_schema.table_io_waits_summary_by_index_usage u
  ON u.object_schema = s.database_name AND u.object_name = s.table_name AND u.index_name = s.index_name
WHERE s.database_name = DATABASE() AND s.table_name IN (:executions_table, :attempts_table) AND s.stat_name = 'size'
ORDER BY index_bytes DESC, index_name
LIMIT :limit
