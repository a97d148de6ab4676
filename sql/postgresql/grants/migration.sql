-- migration: what creating the tables and changing their indexes needs. PostgreSQL 13 and later.
--
-- Run it as it is, as an administrator, in the deployment's database and before the tables are there or after; again
-- does no harm:
--   psql -v ON_ERROR_STOP=1 -f migration.sql DATABASE
--
-- It makes the role onestep_migration with the rights below. Then, for each account that is to have them:
--   CREATE ROLE "NAME" LOGIN PASSWORD 'PASSWORD';
--   GRANT onestep_migration TO "NAME";
-- The account inherits the rights, unless it was made NOINHERIT.
--
-- `opsctl grants sql --role migration --to ACCOUNT` prints the same for an account without a role, and for tables of
-- other names.
--
-- A table belongs to whoever creates it, and only its owner, with the members of the owner, may alter it, index it or
-- drop it: no GRANT gives that. So let this role own the tables, and every account that has the role can change them:
--   ALTER TABLE onestep_executions OWNER TO onestep_migration;
--   ALTER TABLE onestep_execution_attempts OWNER TO onestep_migration;
--   ALTER TABLE opsctl_rev_onestep_executions_onestep_execution_attempts OWNER TO onestep_migration;
-- (the last is the version record, when there is one), or have an account work as the role from the start:
--   ALTER ROLE "NAME" IN DATABASE "DATABASE" SET role = 'onestep_migration';
-- Tables that onestep made by itself, with auto_create on, belong to the runtime account: change their owner, or that
-- account keeps all of DDL.
--
-- Left out on purpose: CREATE on the database (schemas, extensions), TEMPORARY, rights on tables of others.
BEGIN;

-- @role
DO $role$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'onestep_migration') THEN
    CREATE ROLE onestep_migration;
  END IF;
END
$role$;

-- @schema
-- Where the search_path finds the tables, or else the first schema in it.
SELECT coalesce(string_agg(DISTINCT relnamespace::regnamespace::text, ', '), quote_ident(current_schema())) AS schemas
  FROM pg_catalog.pg_class
 WHERE oid IN (to_regclass('onestep_executions'), to_regclass('onestep_execution_attempts')) \gset

-- @rights
-- The tables and the version record are made in this schema. With USAGE alone they could not be, and with CREATE
-- alone not be found.
GRANT USAGE, CREATE ON SCHEMA :schemas TO onestep_migration;

-- Mostly everybody has CONNECT already, where it was not taken from PUBLIC.
GRANT CONNECT ON DATABASE :"DBNAME" TO onestep_migration;

-- @end
COMMIT;
