"""The words that tables, results and people share, each once: lines of the ledger, causes of losses, levels, health codes, copies."""
