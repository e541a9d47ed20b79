"""Comparisons, checks and baselines for people and pipelines."""
