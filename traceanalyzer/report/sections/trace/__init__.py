"""The sections of the report, a module each: what it is called, where it stands, and its plain values."""
