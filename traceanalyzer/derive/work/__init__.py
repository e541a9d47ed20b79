"""The work of one unit, by which captures of any length can be compared."""
