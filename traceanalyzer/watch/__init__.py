"""The watcher: takes captures as they land, each once, and keeps what people and machines look at."""
