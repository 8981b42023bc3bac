"""The names of the approvals' jobs."""

REMIND = "approvals.remind"
