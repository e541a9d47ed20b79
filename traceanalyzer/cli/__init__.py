"""The command line: one verb a file, no logic, and nothing heavy imported before a verb runs."""
