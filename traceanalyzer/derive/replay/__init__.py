"""The timeline played again without some cause: what a fix would give."""
