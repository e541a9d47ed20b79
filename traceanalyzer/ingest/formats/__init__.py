"""The formats that are read, each a folder that is known to no other."""
