"""What CPU profilers write, form by form: each into threads, stacks and samples."""
