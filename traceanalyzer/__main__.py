"""`python -m traceanalyzer`."""

from traceanalyzer.cli.app import main

main()
