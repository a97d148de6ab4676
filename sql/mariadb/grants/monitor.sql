-- monitor: what watching needs: verify-schema, the exporter, the queries. MariaDB 10.6 and later.
--
-- Run it as it is, as an administrator, in the deployment's database and when both tables are there; again does no
-- harm:
--   mariadb DATABASE < monitor.sql
--
-- It makes the role onestep_monitor with the rights below. Then, for each account that is to have them:
--   CREATE USER 'NAME'@'HOST' IDENTIFIED BY 'PASSWORD';
--   GRANT onestep_monitor TO 'NAME'@'HOST';
--   SET DEFAULT ROLE onestep_monitor FOR 'NAME'@'HOST';
-- The last line counts: without it a role sleeps until SET ROLE. An account has one default role here; one that needs
-- the rights of two is given them straight, by `opsctl grants sql`.
--
-- `opsctl grants sql --role monitor --to ACCOUNT` prints the same for an account without a role, and for tables of
-- other names.
--
-- Left out on purpose: every right to change a row; SELECT on other tables of the database. TRIGGER is the one right
-- here that could do more than read: the servers show a table's triggers to nobody without it, and with it an account
-- can make some, unless the binary log is on; then that takes SUPER. Do without it, and verify-schema says that the
-- triggers are unread (exit code 6).

-- @role
CREATE ROLE IF NOT EXISTS onestep_monitor;

-- @rights
-- The rows: counts, queries, the exporter; and SHOW CREATE TABLE for verify-schema.
GRANT SELECT ON onestep_executions TO onestep_monitor;
GRANT SELECT ON onestep_execution_attempts TO onestep_monitor;

-- verify-schema: the triggers on the tables, those of a dead online schema change among them.
GRANT TRIGGER ON onestep_executions TO onestep_monitor;
GRANT TRIGGER ON onestep_execution_attempts TO onestep_monitor;

-- verify-schema: the tables that an online change left beside these. SHOW VIEW on the database shows that tables are
-- there and how they are defined, and none of their rows. An underscore in the database's name stands for any
-- character here. Give it to the role, or to an account of its own: of several rights on a database the server goes
-- by the closest alone, so this one would hide those that an account has by a pattern, such as ALL ON `app%`.*.
GRANT SHOW VIEW ON * TO onestep_monitor;

-- The version record, which init-tables makes: run this again when it has.
SET @opsctl_grant = IF(EXISTS (SELECT 1 FROM information_schema.tables
                                WHERE table_schema = DATABASE() AND table_name = 'opsctl_rev_onestep_executions_onestep_execution_attempts'),
  'GRANT SELECT ON opsctl_rev_onestep_executions_onestep_execution_attempts TO onestep_monitor', 'DO 0');
PREPARE opsctl_grant FROM @opsctl_grant;
EXECUTE opsctl_grant;
DEALLOCATE PREPARE opsctl_grant;

-- For some queries only. Where a managed server refuses one of these, the queries named beside it are refused too.
--
-- transactions, locks, cleaning: open transactions, what they hold back, and the sessions of other accounts. This is for
-- the whole server, and it shows the statements that run there, with the values in them.
GRANT PROCESS ON *.* TO onestep_monitor;

-- transactions: which program a session belongs to.
GRANT SELECT ON performance_schema.session_connect_attrs TO onestep_monitor;

-- index-sizes: how large each index is, and how often it is used.
GRANT SELECT ON mysql.innodb_index_stats TO onestep_monitor;
GRANT SELECT ON performance_schema.table_io_waits_summary_by_index_usage TO onestep_monitor;
