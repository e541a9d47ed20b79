"""Operators of the framework: their patterns, their host time, and what they start on the GPU."""
