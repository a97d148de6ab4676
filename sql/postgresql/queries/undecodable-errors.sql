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
         (array_agg(found.id ORDER BY found.created_at DESC, found.id))[1] AS example_id
FROM (
  SELECT 'executions' AS table_name, e.namespace, e.task_name, e.created_at, e.id,
         (SELECT string_agg(key, ',' ORDER BY key) FROM jsonb_object_keys(e.error) AS key
          WHERE key NOT IN ('kind', 'exception_type', 'stage', 'backend', 'operation', 'connector_kind'))
            AS unknown_keys
  FROM onestep_executions e
  WHERE CASE WHEN jsonb_typeof(e.error) = 'object'
    THEN e.error - ARRAY['kind', 'exception_type', 'stage', 'backend', 'operation',
      'connector_kind'] <> '{}'::jsonb ELSE false END
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
  UNION ALL
  SELECT 'attempts' AS table_name, e.namespace, e.task_name, e.created_at, e.id,
         (SELECT string_agg(key, ',' ORDER BY key) FROM jsonb_object_keys(a.error) AS key
          WHERE key NOT IN ('kind', 'exception_type', 'stage', 'backend', 'operation', 'connector_kind'))
            AS unknown_keys
  FROM onestep_execution_attempts a JOIN onestep_executions e ON e.id = a.execution_id
  WHERE CASE WHEN jsonb_typeof(a.error) = 'object'
    THEN a.error - ARRAY['kind', 'exception_type', 'stage', 'backend', 'operation',
      'connector_kind'] <> '{}'::jsonb ELSE false END
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
) found
GROUP BY found.table_name, found.namespace, found.task_name, found.unknown_keys
ORDER BY found.table_name DESC, count(*) DESC, found.namespace, found.task_name, found.unknown_keys
LIMIT :limit
