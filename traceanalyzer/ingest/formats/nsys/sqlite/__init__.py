"""Exports as databases: opened without trust, and read by declared tables."""
