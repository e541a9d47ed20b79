"""From a snapshot file to rows: its content as plain data, columns of it, the replay of its history, and what health says of it."""
