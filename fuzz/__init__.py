"""Coverage-guided fuzzing of everything that reads what others wrote. See `python -m fuzz --help`."""
