"""What the tables of a log are asked: where a step goes, whether it grows, what measuring costs, and which figures cannot be right."""
