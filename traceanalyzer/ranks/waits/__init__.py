"""Who waits for whom, and why the one that comes last does."""
