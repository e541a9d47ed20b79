"""Stores on a disk or behind a URL: written whole or not at all, and read as they were written."""
