"""The process around a command: its streams, what watches over it, and what it ends with."""
