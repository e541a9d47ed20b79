"""The job as one timeline: its GPUs played again together, collectives as events that all of their ranks share."""
