"""Nsight Systems exports (SQLite)."""
