"""Collectives: what each communication kernel carries, and which kernels of other ranks belong to it, on one clock."""
