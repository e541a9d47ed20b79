"""From files of NCCL's records to columns: PyTorch's flight recorder, NCCL Inspector, nccl-tests."""
