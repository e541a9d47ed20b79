"""`python -m traceanalyzer`."""

from traceanalyzer.cli.app import run

if __name__ == "__main__":
    run()
