"""Rule files: their form, reading and checking them, and the tests inside them."""
