"""How soon work that waits only for other work begins after that."""

HANDOVER_NS = 50_000
"""The hardware hands over from one operation to the next, also of another stream or GPU, within microseconds: what begins this much
later waited for something else."""
