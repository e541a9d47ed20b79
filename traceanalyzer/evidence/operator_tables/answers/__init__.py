"""What tables of sums and execution traces tell, and what they cannot."""
