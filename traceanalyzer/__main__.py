"""`python -m traceanalyzer`."""

from traceanalyzer.cli.app import run

run()
