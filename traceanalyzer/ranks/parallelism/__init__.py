"""How a job is made parallel, told by its process groups."""
