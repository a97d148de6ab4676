-- runtime: what the API and the workers of onestep need. PostgreSQL 13 and later.
--
-- Run it as it is, as an administrator, in the deployment's database and when both tables are there; again does no
-- harm:
--   psql -v ON_ERROR_STOP=1 -f runtime.sql DATABASE
--
-- It makes the role onestep_runtime with the rights below. Then, for each account that is to have them:
--   CREATE ROLE "NAME" LOGIN PASSWORD 'PASSWORD';
--   GRANT onestep_runtime TO "NAME";
-- The account inherits the rights, unless it was made NOINHERIT.
--
-- `opsctl grants sql --role runtime --to ACCOUNT` prints the same for an account without a role, and for tables of
-- other names.
--
-- Left out on purpose: DELETE and TRUNCATE, which onestep never does; CREATE on the schema, so start the API and the
-- workers with auto_create off; REFERENCES, since the foreign key is checked with its owner's rights; every other
-- table. On PostgreSQL 13 and 14 everybody may create tables in schema public: REVOKE CREATE ON SCHEMA public FROM
-- PUBLIC.
BEGIN;

-- @role
DO $role$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'onestep_runtime') THEN
    CREATE ROLE onestep_runtime;
  END IF;
END
$role$;

-- @schema
-- Where the search_path finds the tables.
SELECT string_agg(DISTINCT relnamespace::regnamespace::text, ', ') AS schemas FROM pg_catalog.pg_class
 WHERE oid IN (to_regclass('onestep_executions'), to_regclass('onestep_execution_attempts')) \gset

-- @rights
-- Submitting inserts an execution, a claim inserts an attempt; everything later updates both. A claim reads what it
-- locks (SELECT ... FOR UPDATE SKIP LOCKED), the API reads for its answers.
GRANT SELECT, INSERT, UPDATE ON onestep_executions TO onestep_runtime;
GRANT SELECT, INSERT, UPDATE ON onestep_execution_attempts TO onestep_runtime;

-- The way to the tables; mostly everybody has CONNECT already, where it was not taken from PUBLIC.
GRANT CONNECT ON DATABASE :"DBNAME" TO onestep_runtime;
GRANT USAGE ON SCHEMA :schemas TO onestep_runtime;

-- @end
COMMIT;
