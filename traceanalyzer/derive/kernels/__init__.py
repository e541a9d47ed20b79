"""Compute kernels: what kind of work each does, how fast, and what the GPU's own metrics say meanwhile."""
