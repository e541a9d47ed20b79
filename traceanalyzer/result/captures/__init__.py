"""What is kept of a capture to compare it, and the figures that budgets are held against."""
