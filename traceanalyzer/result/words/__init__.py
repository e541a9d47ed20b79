"""What outputs for people say alike, in words."""
