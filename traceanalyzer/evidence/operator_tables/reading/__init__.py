"""Content to rows: the text of tables, the JSON of execution traces."""
