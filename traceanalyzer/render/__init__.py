"""The result for people and pipelines: one file a format."""
