"""The sections of the page as plain values: what each says, in words."""
