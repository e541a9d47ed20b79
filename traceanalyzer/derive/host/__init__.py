"""What host threads were at: ranges, calls and samples, and the place in the program behind them."""
