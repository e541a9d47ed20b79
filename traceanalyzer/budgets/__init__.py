"""Budgets: what a user writes of figures and rules, held against captures. `read` and `assertions` say what was written, `judge` what
it comes to."""
