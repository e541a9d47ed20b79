"""What to record next time with Nsight Systems, and how."""
