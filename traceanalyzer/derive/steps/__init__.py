"""Steps: marked or found by repetition, what each cost, and whether they grow."""
