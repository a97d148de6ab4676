-- runtime: what the API and the workers of onestep need. MySQL 8.0.16 and later.
--
-- Run it as it is, as an administrator, in the deployment's database and when both tables are there; again does no
-- harm:
--   mysql DATABASE < runtime.sql
--
-- It makes the role onestep_runtime with the rights below. Then, for each account that is to have them:
--   CREATE USER 'NAME'@'HOST' IDENTIFIED BY 'PASSWORD';
--   GRANT onestep_runtime TO 'NAME'@'HOST';
--   SET DEFAULT ROLE onestep_runtime TO 'NAME'@'HOST';
-- The last line counts: without it (and without activate_all_roles_on_login) a role sleeps until SET ROLE.
--
-- `opsctl grants sql --role runtime --to ACCOUNT` prints the same for an account without a role, and for tables of
-- other names.
--
-- Left out on purpose: DELETE, which onestep never does; CREATE and all other DDL, so start the API and the workers
-- with auto_create off; every other table.

-- @role
CREATE ROLE IF NOT EXISTS onestep_runtime;

-- @rights
-- Submitting inserts an execution, a claim inserts an attempt; everything later updates both. A claim reads what it
-- locks (SELECT ... FOR UPDATE SKIP LOCKED), the API reads for its answers.
GRANT SELECT, INSERT, UPDATE ON onestep_executions TO onestep_runtime;
GRANT SELECT, INSERT, UPDATE ON onestep_execution_attempts TO onestep_runtime;
