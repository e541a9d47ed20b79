"""Reading a log: lines as they were printed, and what each of DeepSpeed's reports says."""
