"""What goes into a file that is passed around must not tell of the person or the machine it came from."""
