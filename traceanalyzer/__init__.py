"""Find where a GPU's time went.

    import traceanalyzer as ta

    trace = ta.load("trace.json.gz")        # or a Nsight Systems SQLite export, a folder of ranks, a store
    result = ta.analyze(trace)
    print(result.verdict.headline)
    trace.table("gpu_ops")                  # pyarrow.Table
    trace.to_pandas("gpu_ops")              # pandas.DataFrame
    ta.figures(trace)                       # the report's charts by title, as plotly's figures

The names are imported on first use, so that `import traceanalyzer` and `traceanalyzer --help` stay quick, and so that nothing can fail
before the command line is there to say so.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from traceanalyzer.analysis import analyze, load
    from traceanalyzer.analysis.figures import figures
    from traceanalyzer.errors import ConfigError, InputError, TraceAnalyzerError
    from traceanalyzer.model.trace import Trace
    from traceanalyzer.result.document import Result

__all__ = ["ConfigError", "InputError", "Result", "Trace", "TraceAnalyzerError", "analyze", "figures", "load"]

_HOMES = {
    "ConfigError": "traceanalyzer.errors",
    "InputError": "traceanalyzer.errors",
    "TraceAnalyzerError": "traceanalyzer.errors",
    "analyze": "traceanalyzer.analysis",
    "figures": "traceanalyzer.analysis.figures",
    "load": "traceanalyzer.analysis",
    "Trace": "traceanalyzer.model.trace",
    "Result": "traceanalyzer.result.document",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'traceanalyzer' has no attribute '{name}'")
