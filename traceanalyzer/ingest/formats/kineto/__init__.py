"""PyTorch (Kineto) and other Chrome-trace JSON."""
