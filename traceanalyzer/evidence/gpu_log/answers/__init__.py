"""What a log of GPUs tells: which GPU of it is which of the trace, how it did under load, what held it back, and who else was there."""
