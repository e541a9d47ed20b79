"""What a memory snapshot tells: who holds memory, what grows, what is there for a moment, what is reserved for nothing, what failed."""
