"""What NCCL's records of several ranks say together: who is missing, who does something else, and who comes late."""
