"""What was recorded of which program: its span, its health, and what lies outside of what is judged."""
