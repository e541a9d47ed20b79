"""Ranks together: tables that take the files of a whole job, or say what one rank does with others."""
