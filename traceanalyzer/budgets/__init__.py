"""Budgets: what a user writes of figures and rules, held against captures. `files` and `assertions` say what was written, `judge` what
it comes to."""
