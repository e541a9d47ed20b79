"""What to record next time so that a CPU profile tells more."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyzer.model.tables import Tables
from traceanalyzer.result.recording.diagnosis import Setting

_COARSE_NS = 5_000_000


def advice(tables: Tables) -> Iterator[Setting]:
    """One setting for each thing that this profile lacks."""
    rows = tables.table("cpu_profiles").to_pylist()
    if not rows:
        return
    about = rows[0]
    if not about["epoch"]:
        yield Setting(
            "samples on the trace's clock",
            "viztracer.VizTracer(tracer_entries=5_000_000, ignore_c_function=True) in the program around some steps",
            "which code ran while each GPU was idle: its times count from the epoch, as a trace's do",
            "a call of Python takes about twice as long",
            "perf script and Austin have times on clocks of their own, and py-spy's count from its start: these need --offset.",
            [],
        )
    if about["lost"]:
        yield Setting(
            "a longer ring",
            "a larger --tracer_entries, or a smaller --max_stack_depth",
            "the beginning of the recording",
            "about 100 bytes of memory a call",
            None,
            [],
        )
    if str(about["producer"]).startswith("py-spy"):
        yield from _pyspy(about)
    if about["form"] == "perf script" and not _has_python(tables):
        yield Setting(
            "Python's functions in perf",
            "python -X perf (from Python 3.12 on), and perf record -g -k CLOCK_MONOTONIC",
            "the functions of the program in place of the interpreter's",
            "a few percent",
            None,
            [],
        )


def _pyspy(about: dict[str, object]) -> Iterator[Setting]:
    if about["idle_kept"] is None:
        yield Setting(
            "idle samples",
            "py-spy record --idle",
            "what threads wait in, and times that do not jump where a thread waited",
            "nothing",
            "Threads that wait for work are in the profile then; look at the main thread.",
            [],
        )
    period = about["period"]
    if isinstance(period, int) and period > _COARSE_NS:
        yield Setting(
            "a higher rate",
            "py-spy record --rate 250",
            "functions that take some ms of a step",
            "some percent of the program's time",
            None,
            [],
        )
    yield Setting(
        "compiled code, the lock, other processes",
        "py-spy record --native --gil --subprocesses, each where it is the question",
        "functions of C and C++ extensions (--native), who holds Python's lock (--gil), workers of data loaders (--subprocesses)",
        "--native some ms a sample",
        None,
        [],
    )


def _has_python(tables: Tables) -> bool:
    return any(row["python"] for row in tables.table("cpu_threads").to_pylist())
