"""Bytes of files: where they lie, how they are packed, how much of them is believed."""
