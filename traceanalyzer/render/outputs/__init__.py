"""The outputs that ship: a folder for each kind of document, a module for each format."""
