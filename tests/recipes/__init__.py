"""The recipes of docs/recipes: each runs, with stand-ins for what is not on this machine."""
