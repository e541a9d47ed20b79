"""What is known of a trace: event tables, in memory and on disk, and what names say."""
