"""The sections of the page of a history, a module each."""
