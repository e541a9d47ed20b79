"""Histories: many captures of one or more programs, in a folder or behind a URL, and what they come to."""
