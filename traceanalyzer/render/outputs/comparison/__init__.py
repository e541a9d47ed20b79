"""The outputs of a comparison, a module each: what it is called, what it is for, and what writes it."""
