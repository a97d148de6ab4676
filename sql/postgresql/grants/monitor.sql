-- monitor: what watching needs: verify-schema, the exporter, the queries. PostgreSQL 13 and later.
--
-- Run it as it is, as an administrator, in the deployment's database and when both tables are there; again does no
-- harm:
--   psql -v ON_ERROR_STOP=1 -f monitor.sql DATABASE
--
-- It makes the role onestep_monitor with the rights below. Then, for each account that is to have them:
--   CREATE ROLE "NAME" LOGIN PASSWORD 'PASSWORD';
--   GRANT onestep_monitor TO "NAME";
-- The account inherits the rights, unless it was made NOINHERIT.
--
-- `opsctl grants sql --role monitor --to ACCOUNT` prints the same for an account without a role, and for tables of
-- other names.
--
-- Left out on purpose: every right to change a row; pg_read_all_data, which is all tables; pg_monitor, of which
-- pg_read_all_stats is the part that counts here. verify-schema needs no right on the tables: pg_catalog is open.
-- Granting pg_read_all_stats takes a superuser, or from PostgreSQL 16 on somebody with its ADMIN OPTION (on managed
-- servers the administrator has it).
BEGIN;

-- @role
DO $role$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'onestep_monitor') THEN
    CREATE ROLE onestep_monitor;
  END IF;
END
$role$;

-- @schema
-- Where the search_path finds the tables.
SELECT string_agg(DISTINCT relnamespace::regnamespace::text, ', ') AS schemas FROM pg_catalog.pg_class
 WHERE oid IN (to_regclass('onestep_executions'), to_regclass('onestep_execution_attempts')) \gset

-- @rights
-- The rows: counts, queries, the exporter.
GRANT SELECT ON onestep_executions TO onestep_monitor;
GRANT SELECT ON onestep_execution_attempts TO onestep_monitor;

-- The version record, which init-tables makes: run this again when it has.
SELECT to_regclass('opsctl_rev_onestep_executions_onestep_execution_attempts') IS NOT NULL AS recorded \gset
\if :recorded
GRANT SELECT ON opsctl_rev_onestep_executions_onestep_execution_attempts TO onestep_monitor;
\endif

-- The way to the tables; mostly everybody has CONNECT already, where it was not taken from PUBLIC.
GRANT CONNECT ON DATABASE :"DBNAME" TO onestep_monitor;
GRANT USAGE ON SCHEMA :schemas TO onestep_monitor;

-- Sessions of other roles: what they run, since when, which rows they keep from being cleaned up (pg_stat_activity,
-- pg_stat_replication). Without it the queries run, and see of other roles' sessions only that they are there.
GRANT pg_read_all_stats TO onestep_monitor;

-- @end
COMMIT;
