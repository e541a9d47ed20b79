"""Traces for other programs to show: what was read, and what was found in it."""
