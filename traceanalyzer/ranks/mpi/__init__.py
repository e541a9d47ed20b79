"""Calls of MPI, matched across ranks."""
