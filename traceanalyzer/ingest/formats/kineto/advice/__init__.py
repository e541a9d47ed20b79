"""What to record next time with the profilers that write Chrome's trace events, and how."""
