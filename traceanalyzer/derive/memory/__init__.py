"""Device memory as the trace records it."""
