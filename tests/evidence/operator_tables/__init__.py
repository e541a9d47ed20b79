"""PyTorch's own tables: sums of the profiler, execution traces."""
