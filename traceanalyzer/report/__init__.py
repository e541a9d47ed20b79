"""The HTML page: one file with everything inside it."""
