"""The sections of the page of a comparison, a module each: what it is called, where it stands, and its plain values."""
