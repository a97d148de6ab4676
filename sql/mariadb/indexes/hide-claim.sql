-- hide-claim: takes the stock claim index from the optimizer's sight, now that `ready` stands in its place
--
-- Hidden, it is kept up to date as before and can be shown again in a moment. The optimizer believes that it finds the few
-- rows of a claim near its beginning, where in truth the finished rows are.
--
-- @serves claim
-- @needs ready
-- @hides ix_onestep_executions_claim
-- @writes submit 0, claim 0, heartbeat 0, complete 0
ALTER TABLE onestep_executions ALTER INDEX ix_onestep_executions_claim IGNORED;
