"""Exports as databases: opened without trust, and read by declared tables."""

SQLITE_MAGIC = b"SQLite format 3\x00"
"""How every SQLite file begins."""
