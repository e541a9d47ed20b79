"""The timeline: lanes from the tables on one clock, within the size a page may have."""
