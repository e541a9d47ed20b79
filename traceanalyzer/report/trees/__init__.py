"""Call stacks: where the time goes by what the host did, as trees that the page draws as icicles."""
