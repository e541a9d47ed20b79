"""Trees of calls: where a line of the ledger, or a host thread's time, goes by the stack of what the host did."""
