"""Other witnesses than traces: each kind of evidence is a folder, known to nothing else in the house."""
