"""NCCL's records as evidence."""
