"""Logs of GPUs."""
