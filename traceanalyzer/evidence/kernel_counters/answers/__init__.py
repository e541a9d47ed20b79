"""What counters of kernels tell: profiles, what limits each, and which launches of the trace they stand for."""
