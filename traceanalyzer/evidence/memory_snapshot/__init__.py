"""Memory snapshots of PyTorch's CUDA caching allocator (`torch.cuda.memory._dump_snapshot`): who holds what, since when."""
