-- lease-search: onestep looks for runs whose lease has run out, in every claim
--
-- For all namespaces and tasks of the pair. Source: onestep-sql 0.4.0 to 0.7.1, _release_expired_leases.
--
-- @sender onestep
-- @claim
SELECT onestep_executions.id, onestep_executions.lease_token, onestep_executions.version
FROM onestep_executions
WHERE onestep_executions.status = 'running'
  AND onestep_executions.lease_expires_at IS NOT NULL
  AND onestep_executions.lease_expires_at <= :now
ORDER BY onestep_executions.lease_expires_at, onestep_executions.id
LIMIT 100
