"""All tables of a trace by name, and what is declared of them."""
