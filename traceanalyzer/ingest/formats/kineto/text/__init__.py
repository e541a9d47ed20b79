"""Chrome-trace JSON as text: cut into events, mended where it is damaged, decoded."""
