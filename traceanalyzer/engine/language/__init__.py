"""The expression language of rules: syntax, kinds, functions, messages."""
