"""Derived tables, by family: each a function of the tables that it declares."""
