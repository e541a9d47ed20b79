"""Launches: which call started which operation on the GPU, whether the clocks of both agree, and what ran before the recording."""
