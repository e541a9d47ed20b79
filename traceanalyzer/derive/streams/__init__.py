"""Streams that wait for each other: recorded events, the legacy default stream, hardware queues."""
