-- largest-rows: the executions with the most JSON
--
-- onestep allows 1 MiB for a payload, 1 MiB for a result and 64 KiB for metadata. Large rows make every read of them,
-- backup and replication slow: keep a reference in the payload, and the data elsewhere.
--
-- @param namespace text: only this namespace
-- @param task text: only this task
-- @param since duration: only what was created since then
-- @index ix_onestep_executions_list, when a namespace and since are given
-- @cost with a namespace and since, reads what was created in it since then; else reads the whole executions table
-- @id execution_id
-- @limit 20
SELECT e.id AS execution_id, e.namespace, e.task_name, e.status,
       coalesce(octet_length(e.payload::text), 0) AS payload_bytes,
         coalesce(octet_length(e.metadata::text), 0) AS metadata_bytes,
       coalesce(octet_length(e.result::text), 0) AS result_bytes,
         coalesce(octet_length(e.error::text), 0) AS error_bytes,
       coalesce(octet_length(e.payload::text), 0) + coalesce(octet_length(e.metadata::text),
         0) + coalesce(octet_length(e.result::text), 0) + coalesce(octet_length(e.error::text), 0) AS total_bytes,
         e.created_at
FROM onestep_executions e
WHERE 1 = 1
  -- @if namespace: AND e.namespace = :namespace
  -- @if task: AND e.task_name = :task
  -- @if since: AND e.created_at >= current_timestamp - make_interval(secs => :since)
ORDER BY total_bytes DESC, e.id
LIMIT :limit
