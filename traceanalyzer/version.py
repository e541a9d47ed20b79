"""The version of the tool, for its result document and stores."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("traceanalyzer")
except PackageNotFoundError:  # a source tree that was never installed
    VERSION = "0"
