"""Sections that a kind of evidence adds as plain data (`result.sections`), on the page: words, tables, charts, flame graphs."""
