"""Rows of event tables, of whatever format: sorted, collected, and told whose they are."""
