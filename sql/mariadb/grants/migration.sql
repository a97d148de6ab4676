-- migration: what creating the tables and changing their indexes needs. MariaDB 10.6 and later.
--
-- Run it as it is, as an administrator, in the deployment's database and before the tables are there or after; again
-- does no harm:
--   mariadb DATABASE < migration.sql
--
-- It makes the role onestep_migration with the rights below. Then, for each account that is to have them:
--   CREATE USER 'NAME'@'HOST' IDENTIFIED BY 'PASSWORD';
--   GRANT onestep_migration TO 'NAME'@'HOST';
--   SET DEFAULT ROLE onestep_migration FOR 'NAME'@'HOST';
-- The last line counts: without it a role sleeps until SET ROLE. An account has one default role here; one that needs
-- the rights of two is given them straight, by `opsctl grants sql`.
--
-- `opsctl grants sql --role migration --to ACCOUNT` prints the same for an account without a role, and for tables of
-- other names.
--
-- Left out on purpose: DROP (and with it TRUNCATE and renaming), which loses executions and which neither init-tables
-- nor an index needs; INSERT, UPDATE and DELETE on the pair; every other table. ANALYZE TABLE wants INSERT here, so
-- it is an administrator's. The triggers and what online changes left are the monitor's to see: verify-schema wants
-- that role. pt-online-schema-change and gh-ost copy the table, so they want more on the whole database: SELECT,
-- INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX, TRIGGER and REFERENCES; give them that for the one change, and
-- take it back.

-- @role
CREATE ROLE IF NOT EXISTS onestep_migration;

-- @rights
-- init-tables: CREATE; SELECT, to see what is there; REFERENCES, for the foreign key. The indexes: INDEX for CREATE
-- INDEX and DROP INDEX; ALTER to hide one or show it again, and for what verify-schema gives to mend. CREATE is for
-- these names only.
GRANT CREATE, SELECT, REFERENCES, ALTER, INDEX ON onestep_executions TO onestep_migration;
GRANT CREATE, SELECT, ALTER, INDEX ON onestep_execution_attempts TO onestep_migration;

-- The version record: made and written by init-tables, moved on by later versions, cleared when the tables are gone.
GRANT CREATE, SELECT, INSERT, UPDATE, DELETE ON opsctl_rev_onestep_executions_onestep_execution_attempts TO onestep_migration;
