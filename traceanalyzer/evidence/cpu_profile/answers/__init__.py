"""What a CPU profile tells: whose code ran, what is start-up, and whether its times meet those of a trace."""
