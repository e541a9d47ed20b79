"""From a log of GPUs to rows: what its fields are called, how its values are written, and one module for each way to write one."""
