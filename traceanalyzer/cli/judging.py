"""From what the user names to what was found in it, with progress; what is loaded, is loaded while small traces are being read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyzer.cli.common import counting, reading

if TYPE_CHECKING:
    from traceanalyzer.analysis import Analysis
    from traceanalyzer.analysis.parts import Part
    from traceanalyzer.config import Config
    from traceanalyzer.ingest.ahead import Ahead
    from traceanalyzer.ingest.how import How


@contextmanager
def analysis_of(
    inputs: list[Path], config: Config, how: How, shown: bool = False
) -> Iterator[tuple[Sequence[Part], Analysis]]:
    """The parts of a job and what was found in them; `shown` where a report of them is made.

    What is imported before, the reading of small traces waits for; what is imported here, it does not.
    """
    from traceanalyzer.ingest.ahead import read_ahead

    with ExitStack() as stack:
        with read_ahead(inputs, how) as ahead:
            from traceanalyzer.analysis import analyze_parts
            from traceanalyzer.analysis.examine import rules_for
            from traceanalyzer.analysis.opening import open_parts
            from traceanalyzer.garbage import keep_what_is_there

            rules_for(config)  # What does not fit is said before anything is waited for.
            if ahead and ahead.traces:
                _load(shown)
            keep_what_is_there()
            with _heard(how, ahead) as heard:
                parts, executor = stack.enter_context(open_parts(inputs, heard, ahead))
        bars = stack.enter_context(ExitStack())

        def count(what: str) -> Callable[[], None]:
            bars.close()
            return bars.enter_context(counting(what, len(parts))) if len(parts) > 1 else lambda: None

        found = analyze_parts(parts, config, executor, count, offsets=how.offsets, shown=shown, processes=how.jobs)
        bars.close()
        yield found.parts, found


@contextmanager
def _heard(how: How, ahead: Ahead | None) -> Iterator[How]:
    """With what hears of files that several processes read, or else of bytes that this one reads."""
    if ahead and ahead.traces and len(ahead.found) > 1:
        with counting("reading files", len(ahead.found)) as done:
            yield replace(how, done=done)
    else:
        with reading() as progress:
            yield replace(how, progress=progress)


def _load(shown: bool) -> None:
    """What judging a trace, and showing it, would load on the way: there is time for that while the trace is being read."""
    from traceanalyzer.arrow import load_the_rest
    from traceanalyzer.catalog.declarations import load_functions

    load_the_rest()
    load_functions()
    if shown:
        import traceanalyzer.report.html  # noqa: F401
