"""Files to event tables: bytes, rows, and the formats that are read."""
