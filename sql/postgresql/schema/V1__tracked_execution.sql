-- V1: onestep tracked execution, PostgreSQL 13 and later.
--
-- The same pair of tables that onestep-sql 0.3.0 to 0.7.1 and onestep-postgres 0.4.0 create. Run it as it is with psql,
-- as a role with CREATE on the schema; the tables land in the first schema of the search_path, as onestep's do, and
-- `opsctl init-tables` afterwards adopts them. It is one transaction: it fails when a table exists already, and
-- changes nothing then; `opsctl verify-schema` says whether that one is right.
--
-- Three indexes are partial, so that claim, lease search and idempotency cost what is live, not what is stored. CHECK
-- names belong to their table here and are the same for every pair; the server names the foreign key.
BEGIN;

-- @executions
CREATE TABLE onestep_executions (
  id                  uuid         NOT NULL,
  namespace           varchar(255) NOT NULL,
  task_name           varchar(255) NOT NULL,
  status              varchar(32)  NOT NULL,
  payload             jsonb        NOT NULL,
  metadata            jsonb        NOT NULL DEFAULT '{}',
  result              jsonb,
  error               jsonb,
  idempotency_key     varchar(255),
  submission_digest   varchar(64),
  attempts            integer      NOT NULL DEFAULT 0,
  available_at        timestamptz  NOT NULL,
  lease_token         uuid,
  lease_expires_at    timestamptz,
  worker_id           varchar(255),
  cancel_reason       varchar(500),
  cancel_requested_at timestamptz,
  expires_at          timestamptz,
  created_at          timestamptz  NOT NULL,
  updated_at          timestamptz  NOT NULL,
  started_at          timestamptz,
  finished_at         timestamptz,
  version             bigint       NOT NULL DEFAULT 0,
  PRIMARY KEY (id),
  CONSTRAINT ck_onestep_execution_status CHECK (status IN (
    'queued', 'running', 'retrying', 'succeeded', 'failed', 'cancel_requested', 'cancelled', 'expired')),
  CONSTRAINT ck_onestep_execution_idempotency CHECK (
    (idempotency_key IS NULL AND submission_digest IS NULL)
    OR (idempotency_key IS NOT NULL AND submission_digest IS NOT NULL))
);
CREATE UNIQUE INDEX uq_onestep_executions_idempotency
  ON onestep_executions (namespace, task_name, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX ix_onestep_executions_claim
  ON onestep_executions (namespace, task_name, available_at, created_at, id) WHERE status IN ('queued', 'retrying');
CREATE INDEX ix_onestep_executions_lease
  ON onestep_executions (lease_expires_at, id) WHERE status IN ('running', 'cancel_requested');
CREATE INDEX ix_onestep_executions_list
  ON onestep_executions (namespace, created_at DESC, id DESC);

-- @attempts
CREATE TABLE onestep_execution_attempts (
  id           uuid         NOT NULL,
  execution_id uuid         NOT NULL,
  attempt_no   integer      NOT NULL,
  lease_token  uuid         NOT NULL,
  worker_id    varchar(255) NOT NULL,
  status       varchar(32)  NOT NULL,
  error        jsonb,
  started_at   timestamptz  NOT NULL,
  heartbeat_at timestamptz  NOT NULL,
  finished_at  timestamptz,
  PRIMARY KEY (id),
  CONSTRAINT uq_onestep_execution_attempts_execution_attempt UNIQUE (execution_id, attempt_no),
  CONSTRAINT ck_onestep_attempt_status CHECK (status IN (
    'running', 'succeeded', 'retrying', 'failed', 'cancelled', 'lease_lost')),
  FOREIGN KEY (execution_id) REFERENCES onestep_executions (id) ON DELETE CASCADE
);
CREATE INDEX ix_onestep_execution_attempts_execution
  ON onestep_execution_attempts (execution_id, attempt_no DESC);

-- @end
COMMIT;
