"""Many captures of one program over time: what changed, when, and whether that is the program's doing."""
