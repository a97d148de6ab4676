-- undecodable-errors: errors that an older onestep cannot read
--
-- onestep 1.9 knows the keys kind, exception_type, stage, backend, operation and connector_kind, and later ones write
-- more. One row in executions with another key breaks get, and the whole list page, of an API that is older than its
-- workers: look here before you roll an API back, and roll both back together. Rows in attempts show the same of
-- single attempts.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @index none: every error is looked at
-- @cost reads the whole executions and attempts tables
-- @id example_id
SELECT found.table_name, found.namespace, found.task_name, found.unknown_keys, count(*) AS rows_found,
       max(found.created_at) AS newest_created_at,
         SUBSTRING_INDEX(GROUP_CONCAT(found.id ORDER BY found.created_at DESC, found.id), ',', 1) AS example_id
FROM (
  SELECT 'executions' AS table_name, e.namespace, e.task_name, e.created_at, e.id,
         (SELECT GROUP_CONCAT(k.name ORDER BY k.name)
          FROM JSON_TABLE(
            JSON_KEYS(JSON_REMOVE(e.error, '$.kind', '$.exception_type', '$.stage', '$.backend', '$.operation',
                                  '$.connector_kind')),
            '$[*]' COLUMNS (name varchar(255) PATH '$')) k) AS unknown_keys
  FROM onestep_executions e
  WHERE JSON_TYPE(e.error) = 'OBJECT'
    AND JSON_LENGTH(JSON_REMOVE(e.error, '$.kind', '$.exception_type', '$.stage', '$.backend', '$.operation',
      '$.connector_kind')) > 0
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
  UNION ALL
  SELECT 'attempts' AS table_name, e.namespace, e.task_name, e.created_at, e.id,
         (SELECT GROUP_CONCAT(k.name ORDER BY k.name)
          FROM JSON_TABLE(
            JSON_KEYS(JSON_REMOVE(a.error, '$.kind', '$.exception_type', '$.stage', '$.backend', '$.operation',
                                  '$.connector_kind')),
            '$[*]' COLUMNS (name varchar(255) PATH '$')) k) AS unknown_keys
  FROM onestep_execution_attempts a JOIN onestep_executions e ON e.id = a.execution_id
  WHERE JSON_TYPE(a.error) = 'OBJECT'
    AND JSON_LENGTH(JSON_REMOVE(a.error, '$.kind', '$.exception_type', '$.stage', '$.backend', '$.operation',
      '$.connector_kind')) > 0
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
) found
GROUP BY found.table_name, found.namespace, found.task_name, found.unknown_keys
ORDER BY found.table_name DESC, count(*) DESC, found.namespace, found.task_name, found.unknown_keys
LIMIT :limit
