-- V1: onestep tracked execution, MySQL 8.0.16 and later.
--
-- The same pair of tables that onestep-sql 0.4.0 to 0.7.1 create. Run it as it is in the mysql client, as an
-- account with CREATE and REFERENCES on the database; `opsctl init-tables` afterwards adopts the tables.
-- It fails when a table exists already, and changes nothing then: `opsctl verify-schema` says whether that one is right.
--
-- 8.0.16 is the first server that enforces CHECK. uuids are 32 hexadecimal digits without dashes. Times are naive UTC
-- with microseconds: DATETIME without (6) rounds, and a fresh row is then briefly not due. CHECK and FOREIGN KEY names
-- are unique in a whole database here, so each carries its table's name. There are no partial indexes: a unique index
-- lets any number of NULL keys pass, which is what idempotency needs.

-- @executions
CREATE TABLE onestep_executions (
  id                  char(32)     NOT NULL,
  namespace           varchar(255) NOT NULL,
  task_name           varchar(255) NOT NULL,
  status              varchar(32)  NOT NULL,
  payload             json         NOT NULL,
  metadata            json         NOT NULL DEFAULT (JSON_OBJECT()),
  result              json         NULL,
  error               json         NULL,
  idempotency_key     varchar(255) NULL,
  submission_digest   varchar(64)  NULL,
  attempts            int          NOT NULL DEFAULT 0,
  available_at        datetime(6)  NOT NULL,
  lease_token         char(32)     NULL,
  lease_expires_at    datetime(6)  NULL,
  worker_id           varchar(255) NULL,
  cancel_reason       varchar(500) NULL,
  cancel_requested_at datetime(6)  NULL,
  expires_at          datetime(6)  NULL,
  created_at          datetime(6)  NOT NULL,
  updated_at          datetime(6)  NOT NULL,
  started_at          datetime(6)  NULL,
  finished_at         datetime(6)  NULL,
  version             bigint       NOT NULL DEFAULT 0,
  PRIMARY KEY (id),
  UNIQUE KEY uq_onestep_executions_idempotency (namespace, task_name, idempotency_key),
  KEY ix_onestep_executions_claim (namespace, task_name, available_at, created_at, id),
  KEY ix_onestep_executions_lease (lease_expires_at, id),
  KEY ix_onestep_executions_list (namespace, created_at DESC, id DESC),
  CONSTRAINT ck_onestep_executions_status CHECK (status IN (
    'queued', 'running', 'retrying', 'succeeded', 'failed', 'cancel_requested', 'cancelled', 'expired')),
  CONSTRAINT ck_onestep_executions_idempotency CHECK (
    (idempotency_key IS NULL AND submission_digest IS NULL)
    OR (idempotency_key IS NOT NULL AND submission_digest IS NOT NULL))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- @attempts
CREATE TABLE onestep_execution_attempts (
  id           char(32)     NOT NULL,
  execution_id char(32)     NOT NULL,
  attempt_no   int          NOT NULL,
  lease_token  char(32)     NOT NULL,
  worker_id    varchar(255) NOT NULL,
  status       varchar(32)  NOT NULL,
  error        json         NULL,
  started_at   datetime(6)  NOT NULL,
  heartbeat_at datetime(6)  NOT NULL,
  finished_at  datetime(6)  NULL,
  PRIMARY KEY (id),
  UNIQUE KEY uq_onestep_execution_attempts_execution_attempt (execution_id, attempt_no),
  KEY ix_onestep_execution_attempts_execution (execution_id, attempt_no DESC),
  CONSTRAINT ck_onestep_execution_attempts_status CHECK (status IN (
    'running', 'succeeded', 'retrying', 'failed', 'cancelled', 'lease_lost')),
  CONSTRAINT fk_onestep_execution_attempts_execution FOREIGN KEY (execution_id)
    REFERENCES onestep_executions (id) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
