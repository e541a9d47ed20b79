"""Settings for the whole suite."""

from hypothesis import settings

# Speed is measured by benchmarks, never by a test: a slow machine must not fail one.
settings.register_profile("traceanalyzer", deadline=None)
settings.load_profile("traceanalyzer")
