"""What a CPU profile shows, in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from traceanalyzer.model.tables import Tables
from traceanalyzer.units import format_count, format_duration, format_share

LEAST_SAMPLES = 20
"""Of fewer samples no share is told: one more or less would change it by a twentieth."""
MOSTLY, LEAST_OWN, LEAST_TOP = 0.5, 0.1, 0.05
"""Shares: what most of it is; and of how much code of the user's, and of one function of it, more is said than that it is little."""
ALL_THREADS = "all threads"
"""The label of a thread that stands for all, where a profile tells none apart."""
Row = Mapping[str, object]
RECORD_COMPILED = (
    "`nsys profile --sample=process-tree`, which samples on the clock of its own trace; of perf "
    "`perf record -g -k CLOCK_MONOTONIC` and `--offset`"
)
"""The same of programs that are no Python."""
RECORD = (
    "`viztracer.VizTracer(tracer_entries=5_000_000, ignore_c_function=True)`, started and stopped in the program around some steps: "
    "it writes times since the epoch"
)
"""The way to record a CPU profile whose times meet those of a trace."""


def headline(tables: Tables) -> str | None:
    """A sentence without its stop of the thread that a profile is judged by; of several profiles of the one with most in it."""
    judged = [row for row in tables.table("cpu_threads").to_pylist() if row["main"]]
    if not judged:
        return None
    about = {row["rank"]: row for row in tables.table("cpu_profiles").to_pylist()}
    clock = {row["rank"]: row for row in tables.table("cpu_clock").to_pylist()}
    units = {row["unit"] for row in about.values()}
    row = max(judged, key=lambda one: (one["weight"] if len(units) == 1 else one["samples"], -one["rank"]))
    functions = functions_of(tables, row)
    said = shown(row, functions, about[row["rank"]])
    return said + _meets(clock.get(row["rank"]), about[row["rank"]])


def _meets(clock: Row | None, about: Row) -> str:
    """What to add to the sentence of a profile beside a trace where its samples are not of the time that the trace shows."""
    if clock is None or not clock["beside"]:
        return ""
    if clock["ends_in_start"] or _int(clock["gap"]) > 0:
        return "; the profile ends before the trace begins"
    if _int(clock["gap"]) < 0:
        return "; the profile begins after the trace ends"
    return (
        "" if clock["on_clock"] and about["timed"] else "; whether that was while the trace was recorded cannot be told"
    )


def functions_of(tables: Tables, thread: Row) -> list[dict[str, object]]:
    """The functions of a thread, heaviest first."""
    table = tables.table("cpu_functions").to_pylist()
    return [one for one in table if one["rank"] == thread["rank"] and one["thread"] == thread["thread"]]


def shown(thread: Row, functions: Sequence[Row], about: Row) -> str:
    """What a thread's samples show, without a stop."""
    weight, startup, samples = (_int(thread[name]) for name in ("weight", "startup", "samples"))
    what = "time" if about["stretches"] else "samples"
    label = str(thread["label"])
    whose = f"the {what}" if label == ALL_THREADS else f"{label}'s {what}"
    rest = weight - startup
    outside = " outside the import chain" if startup else ""
    if rest <= 0:
        return f"All of {whose} {_are(what)} start-up: {_chain(thread)}"
    few = rest if about["unit"] == "samples" else (_int(about["period"]) and rest // _int(about["period"])) or samples
    if not about["stretches"] and few < LEAST_SAMPLES:
        lie = "Only 1 sample lies" if few == 1 else f"Only {format_count(few)} samples lie"
        return f"{lie}{outside or ' in the profile of ' + label}: too few to say which code takes the time"
    said = f"Of {whose}{outside}, {_top(thread, functions, what)}"
    if startup >= MOSTLY * weight:
        said += f"; {format_share(startup / weight)} of all {_are(what)} start-up: {_chain(thread)}"
    return said


def _top(thread: Row, functions: Sequence[Row], what: str) -> str:
    rest = max(_int(thread["weight"]) - _int(thread["startup"]), 1)
    own = _int(thread["own"]) / rest
    leaf = f"{format_share(_int(thread['leaf_weight']) / rest)} {_are(what)} in {thread['leaf']}"
    if not functions or not own:
        return f"none is in code of the user's own that can be named: {leaf}"
    first = functions[0]
    share = float(str(first["share"]))
    if own < LEAST_OWN:
        return f"only {format_share(own)} {_are(what)} in code of the user's own: {leaf}"
    if share < LEAST_TOP:
        return f"no function of the user's own has more than {format_share(share)}: {leaf}"
    inside = f", there in {first['inside']}" if first["inside"] else ""
    return f"{format_share(share)} {_are(what)} in {first['path']}{inside}"


def _chain(thread: Row) -> str:
    """What an import chain is, and who started it."""
    of = f" of {thread['imported']}" if thread["imported"] else ""
    by = f", which {thread['importer']} begins" if thread["importer"] else ""
    return f"imports{of}{by}, once and not in every step"


def _are(what: str) -> str:
    return "is" if what == "time" else "are"


def clock_words(about: Row, clock: Row | None, python: bool) -> str:
    """Whether the samples can be compared with the trace's times, and what to record where they cannot."""
    record = RECORD if python else RECORD_COMPILED
    if clock is None or not clock["beside"]:
        if about["timed"]:
            return ""
        return f"It holds no times of single samples: which were taken while a GPU was idle cannot be told. To record that: {record}."
    if clock["on_clock"] and about["timed"]:
        return _on_clock(clock)
    if clock["ends_in_start"]:
        return (
            "The last samples lie where torch.profiler was still being started, and a trace begins after that: the profile ends before "
            f"the trace begins, and says nothing of the idle time in it. To record both at once: {record}."
        )
    if about["timed"]:
        return (
            "Its times are on a clock of its own, which the trace does not have: whether the two overlap cannot be told, and "
            "nothing of the idle time is put down to these samples. `--offset FILE=+1.5s` says what to add to its times; to record one "
            f"that needs none: {record}."
        )
    return (
        "It holds no times of single samples: nothing of the trace's idle time is put down to them"
        f"{'' if clock['on_clock'] else ', and whether the two overlap cannot be told'}. To record one that tells: {record}."
    )


def _on_clock(clock: Row) -> str:
    gap = clock["gap"]
    if isinstance(gap, int) and gap:
        when = (
            f"ends {format_duration(gap)} before the trace begins"
            if gap > 0
            else f"begins {format_duration(-gap)} after the trace ends"
        )
        return f"The two do not overlap: the profile {when}, and says nothing of the idle time in it."
    inside = _int(clock["inside"])
    if not inside:
        return "Its times are on the trace's clock, and none of its samples is of a launching thread within what is judged."
    off = f" Its times may be off by {format_duration(_int(clock['clock_error']))}." if clock["clock_error"] else ""
    return (
        "Its times are on the trace's clock: samples of launching threads stand for "
        f"{format_duration(_int(clock['sampled_idle']))} of the {format_duration(_int(clock['idle']))} in which GPUs are idle, and the "
        f"call stacks of idle time show them.{off}"
    )


def caveats(about: Row) -> str:
    """What the form of the profile leaves out, or shows as longer than it was."""
    said = []
    if about["form"] == "py-spy chrometrace":
        said.append(
            "A chrome trace of py-spy stretches a frame until the next sample of its thread, so that a thread that waits, and is not "
            "sampled, looks busy: shares of functions that wait are too large."
        )
    elif str(about["producer"]).startswith("py-spy") and about["timed"]:
        said.append(
            "Unless it ran with `--idle`, py-spy leaves out the samples of threads that wait: later samples then look earlier than "
            "they were."
        )
    if about["lost"]:
        said.append(f"Its beginning is lost: {about['lost']}.")
    return " ".join(said)


def _int(value: object) -> int:
    return value if isinstance(value, int) else 0
