-- operator: what repairing and clearing out by hand needs (cancel, reclaim, release, hold, purge). PostgreSQL 13 and
-- later.
--
-- Run it as it is, as an administrator, in the deployment's database and when both tables are there; again does no
-- harm:
--   psql -v ON_ERROR_STOP=1 -f operator.sql DATABASE
--
-- It makes the role onestep_operator with the rights below. Then, for each account that is to have them:
--   CREATE ROLE "NAME" LOGIN PASSWORD 'PASSWORD';
--   GRANT onestep_operator TO "NAME";
-- The account inherits the rights, unless it was made NOINHERIT.
--
-- `opsctl grants sql --role operator --to ACCOUNT` prints the same for an account without a role, and for tables of
-- other names.
--
-- Left out on purpose: INSERT, since new executions are submitted with the runtime rights, so that the rules for keys
-- and digests hold (opsctl executions resubmit wants both roles); DDL and TRUNCATE. A purge that archives into a
-- table wants INSERT and SELECT on that table too.
BEGIN;

-- @role
DO $role$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'onestep_operator') THEN
    CREATE ROLE onestep_operator;
  END IF;
END
$role$;

-- @schema
-- Where the search_path finds the tables.
SELECT string_agg(DISTINCT relnamespace::regnamespace::text, ', ') AS schemas FROM pg_catalog.pg_class
 WHERE oid IN (to_regclass('onestep_executions'), to_regclass('onestep_execution_attempts')) \gset

-- @rights
-- Finding and locking reads; cancel, reclaim, release and hold update an execution and its attempt; purge deletes,
-- the attempts first, so that no single cascade grows large.
GRANT SELECT, UPDATE, DELETE ON onestep_executions TO onestep_operator;
GRANT SELECT, UPDATE, DELETE ON onestep_execution_attempts TO onestep_operator;

-- The way to the tables; mostly everybody has CONNECT already, where it was not taken from PUBLIC.
GRANT CONNECT ON DATABASE :"DBNAME" TO onestep_operator;
GRANT USAGE ON SCHEMA :schemas TO onestep_operator;

-- @end
COMMIT;
