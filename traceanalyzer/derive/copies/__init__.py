"""Copies between memories: alone, in runs, and there and back again."""
