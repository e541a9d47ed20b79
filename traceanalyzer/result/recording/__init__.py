"""What to record next time, and how."""
