"""Rules over tables: which fire, what each may claim of the ledger, and what a fix would give."""
