"""Process groups: which ranks are members, and who is on the other side of a send."""
