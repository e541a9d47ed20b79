"""The outputs of a check, a module each: what it is called, what it is for, and what writes it."""
