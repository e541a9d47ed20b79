"""The ledger: the windows of the GPUs, what each was busy with, and why it stood idle in between."""
