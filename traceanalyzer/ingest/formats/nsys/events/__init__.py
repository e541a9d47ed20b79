"""Tables of an export as rows of event tables."""
