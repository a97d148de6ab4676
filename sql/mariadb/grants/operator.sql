-- operator: what repairing and clearing out by hand needs (cancel, reclaim, release, hold, purge). MariaDB 10.6 and
-- later.
--
-- Run it as it is, as an administrator, in the deployment's database and when both tables are there; again does no
-- harm:
--   mariadb DATABASE < operator.sql
--
-- It makes the role onestep_operator with the rights below. Then, for each account that is to have them:
--   CREATE USER 'NAME'@'HOST' IDENTIFIED BY 'PASSWORD';
--   GRANT onestep_operator TO 'NAME'@'HOST';
--   SET DEFAULT ROLE onestep_operator FOR 'NAME'@'HOST';
-- The last line counts: without it a role sleeps until SET ROLE. An account has one default role here; one that needs
-- the rights of two is given them straight, by `opsctl grants sql`.
--
-- `opsctl grants sql --role operator --to ACCOUNT` prints the same for an account without a role, and for tables of
-- other names.
--
-- Left out on purpose: INSERT, since new executions are submitted with the runtime rights, so that the rules for keys
-- and digests hold (opsctl executions resubmit wants both roles); DDL and TRUNCATE. A purge that archives into a
-- table wants INSERT and SELECT on that table too.

-- @role
CREATE ROLE IF NOT EXISTS onestep_operator;

-- @rights
-- Finding and locking reads; cancel, reclaim, release and hold update an execution and its attempt; purge deletes,
-- the attempts first, so that no single cascade grows large.
GRANT SELECT, UPDATE, DELETE ON onestep_executions TO onestep_operator;
GRANT SELECT, UPDATE, DELETE ON onestep_execution_attempts TO onestep_operator;
