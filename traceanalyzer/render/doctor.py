"""The diagnosis of trace files as plain text: what a file is first, what to do next time last."""

from __future__ import annotations

from collections.abc import Collection

from traceanalyzer.render.lines import page, wrap
from traceanalyzer.result.recording.diagnosis import (
    Contents,
    Diagnosis,
    FileFacts,
    HealthNote,
    Job,
    NextTime,
    OptionalFact,
    Recording,
    RuleCheck,
)
from traceanalyzer.units import format_bytes, format_count, format_duration, format_share

MOST_NAME = 120
"""Characters of a name or an example that are shown."""
MOST_GPUS = 8
MOST_COUNTERS = 3
LABEL = 20

# What one and several of a kind are called.
RANGES = {
    "operator": ("operator", "operators"),
    "annotation": ("annotation", "annotations"),
    "nvtx": ("NVTX range", "NVTX ranges"),
    "python": ("Python frame", "Python frames"),
    "mpi": ("MPI call", "MPI calls"),
    "os": ("call of the operating system", "calls of the operating system"),
    "openacc": ("construct of OpenACC", "constructs of OpenACC"),
    "openmp": ("region of OpenMP", "regions of OpenMP"),
    "callback": ("host function of a stream", "host functions of streams"),
}
CALLS = {
    "launch": ("launch", "launches"),
    "sync": ("wait for the GPU", "waits for the GPU"),
    "copy": ("copy or memset", "copies or memsets"),
    "memory": ("allocation or release", "allocations or releases"),
    "event": ("event call", "event calls"),
    "other": ("other", "others"),
}
METHODS = {
    "annotation": "marked by annotations",
    "nvtx": "marked by NVTX ranges",
    "repetition": "found by repetition",
}


def render_diagnosis(diagnosis: Diagnosis) -> str:
    """A section a recording and, when there are several, a line about the job. Ends in a newline."""
    lines: list[str] = []
    if diagnosis.job.recordings > 1:
        lines += [*_job(diagnosis.job), ""]
    for number, recording in enumerate(diagnosis.recordings):
        alike = (other.file.path for other in diagnosis.recordings[:number] if other.next_time == recording.next_time)
        lines += [*_recording(recording, next(alike, None)), ""]
    return page(lines[:-1])


def _job(job: Job) -> list[str]:
    size = f" of {job.world_size}" if job.world_size is not None else ""
    what = f"{job.recordings} recordings: {len(job.ranks)}{size} ranks"
    what += f", {job.without_rank} without a rank" if job.without_rank else ""
    what += f"; {_many(job.evidence, 'file')} of evidence" if job.evidence else ""
    if job.missing_ranks:
        more = ", …" if job.missing_ranks > len(job.first_missing) else ""
        what += f"; missing: {', '.join(map(str, job.first_missing))}{more}"
    lines = wrap(what, "job     ", "        ")
    for twice in job.duplicates:
        means = "one is read" if twice.what == "content" else "where they differ, none is compared with other ranks"
        text = f"{len(twice.paths)} files have the same {twice.what}: {', '.join(twice.paths)}; {means}"
        lines += wrap(text.replace("the same rank", "rank"), "        ", "        ")
    return lines


def _recording(recording: Recording, alike: str | None) -> list[str]:
    """One section; `alike` is an earlier file with the same advice for next time."""
    lines = _file(recording.file)
    if recording.could_not_judge:
        lines += wrap(recording.could_not_judge, "  ", "  ")
    held = _rows(recording.tables) if recording.tables else _holds(recording.contents, recording.optional)
    lines += ["", "Holds", *held]
    lines += ["", *_health(recording.health)]
    lines += ["", *_rules(recording.rules, recording.next_time)]
    if alike and recording.next_time.settings:
        return [*lines, "", *wrap(f"Next time: as for {alike}", "", "  ")]
    return [*lines, "", *_next(recording.next_time)]


def _file(file: FileFacts) -> list[str]:
    rank = "rank not stated" if file.rank is None else f"rank {file.rank}"
    rank += f" of {file.world_size}" if file.world_size is not None else ""
    begin = file.first_event_utc.replace("T", " ").replace("Z", " UTC") if file.first_event_utc else None
    clock = f"first event {begin}" if begin else "relative clock: the file does not say when it was recorded"
    span = "no events with a time" if file.span_ns is None else f"{_seconds(file.span_ns)} recorded"
    size = f"{format_bytes(file.bytes)} ({file.container})"
    return [file.path, *wrap(f"{file.producer}; {size}", "  ", "  "), *wrap(f"{span}; {clock}; {rank}", "  ", "  ")]


def _rows(tables: dict[str, int]) -> list[str]:
    """The tables of evidence, and what they lack."""
    rows = ((name.replace("_", " "), _many(count, "row") if count else "none") for name, count in tables.items())
    return [line for label, text in rows for line in wrap(text, f"  {label:<{LABEL}} ", " " * (LABEL + 3))]


def _holds(held: Contents, optional: Collection[OptionalFact]) -> list[str]:
    rows: list[tuple[str, str]] = []
    for gpu in held.gpus[:MOST_GPUS]:
        name = f"GPU {gpu.device}" if gpu.device is not None else "unknown GPU"
        parts = [
            _many(gpu.kernels, "kernel")
            + (f" ({format_count(gpu.communication)} of them communication)" if gpu.communication else ""),
            _many(gpu.copies, "copy", "copies"),
            _many(gpu.memsets, "memset"),
            _many(gpu.graphs, "CUDA graph launch recorded as a whole", "CUDA graph launches recorded as a whole"),
            f"{format_count(gpu.set_aside)} of all these set aside for impossible times" if gpu.set_aside else "",
        ]
        rows.append((name, ", ".join(filter(None, parts)) + (f"; {gpu.name}" if gpu.name else "")))
    if len(held.gpus) > MOST_GPUS:
        rows.append(("", f"and {len(held.gpus) - MOST_GPUS} more GPUs: see --format json"))
    if not held.gpus:
        rows.append(("GPU work", "none"))
    if held.unused_gpus:
        rows.append(("unused GPUs", f"{held.unused_gpus}: described, but nothing ran on them in this recording"))
    rows.append(("API calls", _list(held.api_calls, CALLS)))
    rows.append(("host ranges", _list(held.host_ranges, RANGES)))
    if built_on := _program(held):
        rows.append(("program", built_on))
    if held.traced:
        rows.append(("kinds of events", ", ".join(held.traced)))
    processes = f" in {_many(held.processes, 'process', 'processes')}" if held.processes else ""
    rows.append(("threads", f"{format_count(held.threads)}{processes}" if held.threads else "none"))
    method = METHODS.get(held.step_method or "", held.step_method)
    steps = f"{format_count(held.steps)}, {method}, the first called {_short(held.first_step or '')}"
    rows.append(("steps", steps if held.steps else "none marked"))
    rows += _facts(held, optional)
    return [line for label, text in rows for line in wrap(text, f"  {label:<{LABEL}}", " " * (LABEL + 2))]


def _program(held: Contents) -> str:
    """What the program is written in and built on, as far as names tell it."""
    known = ", ".join([*held.program.languages, *held.program.frameworks])
    return f"{known} (compiled)" if held.program.compiled else known


def _facts(held: Contents, optional: Collection[OptionalFact]) -> list[tuple[str, str]]:
    """What is not in every recording, and whether it is there; of `optional` facts also that they are not."""
    rows = []
    sampled = (
        (held.cpu_samples, "stack of host threads", "stacks of host threads"),
        (held.thread_runs, "stretch in which a thread ran", "stretches in which a thread ran"),
    )
    if any(count for count, *_ in sampled):
        rows.append(("CPU samples", ", ".join(_many(*one) for one in sampled if one[0])))
    if held.page_faults:
        rows.append(("page faults", f"{_many(held.page_faults, 'group', 'groups')} on managed memory"))
    if held.gpu_operations:
        rows.append(("launch records", _launches(held)))
        if "operator_links" in optional:
            rows.append(("operator links", _share(held.linked_to_operator, held.gpu_operations, "GPU operations")))
    operators = held.host_ranges.get("operator", 0)
    if operators or held.shapes or held.framework or "shapes" in optional:
        shapes = _share(held.shapes, operators, "operators") if operators or held.shapes else "none"
        rows.append(("input shapes", shapes))
    if "python_stacks" in optional:
        rows.append(("Python stacks", "yes" if held.host_ranges.get("python") else "none"))
    if held.graphs:
        hidden = f"{format_count(held.graphs)} launches recorded as a whole: the kernels inside are not visible"
        rows.append(("CUDA graphs", hidden))
    elif held.graph_kernels:
        rows.append(("CUDA graphs", f"recorded kernel by kernel ({format_count(held.graph_kernels)} kernels)"))
    elif held.captured_launches:
        rows.append(
            (
                "CUDA graphs",
                f"{format_count(held.captured_launches)} launches captured into graphs that were not launched",
            )
        )
    if held.communication or held.collectives:
        described = _share(held.collectives, max(held.communication, held.collectives), "communication kernels")
        rows.append(("collectives", f"size and group known for {described}"))
    rows.append(("memory events", format_count(held.memory_events) if held.memory_events else "none"))
    rows.append(("counters", _counters(held.counters)))
    return rows


def _launches(held: Contents) -> str:
    text = _share(held.launch_recorded, held.gpu_operations, "GPU operations")
    rest = held.gpu_operations - held.launch_recorded - held.migrations - held.queued_before
    notes = []
    if held.migrations:
        notes.append(f"{format_count(held.migrations)} are migrations of unified memory, which no call starts")
    if held.queued_before:
        notes.append(f"{format_count(held.queued_before)} were queued before recording began, which is normal")
    if rest:
        notes.append(f"{format_count(rest)} lack one, and the file gives no reason")
    return "; ".join([text, *notes])


def _counters(counters: dict[str, int]) -> str:
    if not counters:
        return "none"
    names = ", ".join(map(_short, list(counters)[:MOST_COUNTERS]))
    more = f" and {len(counters) - MOST_COUNTERS} more" if len(counters) > MOST_COUNTERS else ""
    return f"{format_count(sum(counters.values()))} samples of {names}{more}"


def _health(notes: list[HealthNote]) -> list[str]:
    if not notes:
        return ["Health: nothing to report"]
    lines = ["Health"]
    for note in notes:
        count = f" ({format_count(note.count)}×)" if note.count > 1 else ""
        lines += wrap(f"{note.code} {note.message}{count}", f"  {note.severity:<8}", " " * 10)
        if note.example:
            lines += wrap(f"first: {_short(note.example)}", " " * 10, " " * 10)
    return lines


def _rules(rules: RuleCheck, following: NextTime) -> list[str]:
    options = {setting.name: setting.option for setting in following.settings}
    lines = [f"Rules: {rules.judged} of {rules.total} can be judged"]
    for obstacle in rules.obstacles:
        reason = obstacle.reason[:1].upper() + obstacle.reason[1:]
        wanted = "; or else ".join(options[name] for name in obstacle.settings)
        remedy = f" Next time: {wanted}." if wanted else ""
        remedy = " Nothing to record: none ran in this window." if obstacle.none_ran else remedy
        lines += wrap(f"{', '.join(obstacle.rules)}: {reason}.{remedy}", "  ", "    ")
    return lines


def _next(following: NextTime) -> list[str]:
    if not following.settings:
        return ["Next time: nothing is missing"]
    lines = ["Next time"]
    ordered = sorted(following.settings, key=lambda setting: not setting.needed_by)
    for setting in ordered:
        need = "needed" if setting.needed_by else "optional"
        lines += wrap(setting.option, f"  {need:<10}", " " * 12)
        for label, text in (("gives", setting.gives), ("costs", setting.cost), ("mind", setting.mind)):
            if text:
                lines += wrap(f"{label}: {text}", " " * 12, " " * (14 + len(label)))
    for snippet in following.snippets:
        lines += ["", f"  {snippet.title}:", "", *(f"    {line}".rstrip() for line in snippet.text.splitlines())]
    return lines


def _seconds(ns: int) -> str:
    """In seconds, so that files compare at a glance; what is shorter than a millisecond in the unit that fits."""
    return f"{ns / 1e9:,.3f} s" if ns >= 1_000_000 else format_duration(ns)


def _many(count: int, one: str, several: str | None = None) -> str:
    return f"{format_count(count)} {one if count == 1 else several or one + 's'}" if count else ""


def _list(counts: dict[str, int], words: dict[str, tuple[str, str]]) -> str:
    return ", ".join(_many(counts[name], *words[name]) for name in words if counts.get(name)) or "none"


def _share(part: int, whole: int, what: str) -> str:
    if not part:
        return f"none of {format_count(whole)} {what}"
    if part == whole:
        return f"all {format_count(whole)} {what}"
    return f"{format_count(part)} of {format_count(whole)} {what} ({format_share(part / whole)})"


def _short(name: str) -> str:
    text = " ".join(name.split())
    return text if len(text) <= MOST_NAME else text[: MOST_NAME - 1] + "…"
