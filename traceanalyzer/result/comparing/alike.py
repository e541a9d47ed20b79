"""Whether two captures can be compared at all, and what is to be known of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from traceanalyzer.result.capture import Capture, Unit, Work
from traceanalyzer.result.comparison import Note
from traceanalyzer.units import format_share

SAME_WORK = 0.9
"""Two units that nobody marked are the same work if so much of their kernels are the same."""
LIKELY_SAME_WORK = 0.6
"""Of steps that were found by their weight updates and the like, which is a sign of its own."""
OTHER_WORK = 0.5
"""Of marked steps, which are taken at their word; a fix may well replace most kernels."""
SAME_SHAPES = 0.8
"""The share of calls with the same input shapes."""
MARKED = ("annotation", "nvtx")
COPIES = ("memcpy", "memset")


def unlike(base: Capture, new: Capture) -> str | None:
    """Why figures of the two do not compare: other GPUs, another number of them or of ranks. None when they do."""
    models = [{gpu for gpu in capture.gpus if gpu} for capture in (base, new)]
    if all(models) and models[0] != models[1]:
        return f"BASE ran on {_list(models[0])}, NEW on {_list(models[1])}"
    if base.world_size and new.world_size and base.world_size != new.world_size:
        return f"BASE is a job of {_many(base.world_size, 'rank')}, NEW of {new.world_size}"
    if len(base.gpus) != len(new.gpus):
        return f"BASE shows {_many(len(base.gpus), 'GPU')}, NEW {len(new.gpus)}"
    return None


def notes_on(base: Sequence[Capture], new: Sequence[Capture], anyway: bool) -> list[Note]:
    """What is to be known of the comparison, first what refuses it. Of several captures of one side all must be alike."""
    one, other = base[0], new[0]
    notes = [
        *_sound("BASE", base),
        *_sound("NEW", new),
        *_machines(base, new, anyway),
        *_units(one, other),
        *_versions(one, other),
        *_shapes(one, other),
    ]
    return sorted(notes, key=lambda note: not note.refuses)


def _sound(side: str, captures: Sequence[Capture]) -> Iterator[Note]:
    for capture in captures:
        if capture.unjudged:
            yield Note("damage", f"{side} ({capture.name}) could not be judged: {_clause(capture.unjudged)}", True)
        elif capture.no_unit:
            yield Note("unit", f"{side} ({capture.name}) has no unit of work: {capture.no_unit}", True)
        for text in capture.damage if not capture.unjudged else ():
            yield Note("damage", f"{side} ({capture.name}) is damaged: {text}")


def _clause(headline: str) -> str:
    return headline.removeprefix("Could not judge: ").rstrip(".")


def _machines(base: Sequence[Capture], new: Sequence[Capture], anyway: bool) -> Iterator[Note]:
    for side, captures in (("BASE", base), ("NEW", new)):
        apart = next((reason for one in captures[1:] if (reason := unlike(captures[0], one))), None)
        if apart:
            words = apart.replace("BASE", "one").replace("NEW", "another") + ("; compared anyway" if anyway else "")
            yield Note("gpus", f"the captures of {side} are not of one program on one machine: {words}", not anyway)
    if reason := unlike(base[0], new[0]):
        said = f"{reason}; compared anyway" if anyway else reason
        yield Note("gpu" if "ran on" in reason else "ranks", said, not anyway)
    elif base[0].ranks != new[0].ranks:
        yield Note("ranks", f"BASE holds ranks {_list(base[0].ranks)}, NEW ranks {_list(new[0].ranks)}")
    if not all(all(captures[0].gpus) for captures in (base, new)):
        yield Note("gpu", "not all traces say on which GPU they were recorded: whether it is the same is not known")


def _units(base: Capture, new: Capture) -> Iterator[Note]:
    """Two units must be the same work: steps that the program marked are, others must show it."""
    one, other = base.unit, new.unit
    if one is None or other is None:
        return
    alike = _likeness(base.kernels, new.kernels)
    if one.method in MARKED and other.method in MARKED:
        if alike < OTHER_WORK:
            same = "none" if not alike else f"only {format_share(alike)}"
            yield Note(
                "work",
                f"{same} of a step's kernels are the same, as after a rewrite; another program looks like that too",
            )
        return
    least = LIKELY_SAME_WORK if one.kind == other.kind == "step" else SAME_WORK
    if alike < least:
        message = (
            f"the units of work do not match: BASE has {_unit_words(one)}, NEW {_unit_words(other)}, and "
            f"{'none' if not alike else 'only ' + format_share(alike)} of their kernels are the same; mark the steps of both "
            "(prof.step() of torch.profiler, or an NVTX range a step)"
        )
        yield Note("unit", message, True)
    else:
        yield Note("unit", f"no steps are marked on both sides: BASE has {_unit_words(one)}, NEW {_unit_words(other)}")


def _unit_words(unit: Unit) -> str:
    kernels = _many(round(unit.kernels), "kernel")
    if unit.kind == "step":
        return f"steps of {kernels}" + ("" if unit.method in MARKED else ", found by repetition")
    return f"a sequence of {kernels} that repeats" if unit.kind == "repetition" else f"{kernels} without a repetition"


def _likeness(base: Sequence[Work], new: Sequence[Work]) -> float:
    """The share of kernels, by name and number, that both have."""
    counts = [
        {work.name: work.count for work in works if not work.name.lower().startswith(COPIES)} for works in (base, new)
    ]
    names = counts[0].keys() | counts[1].keys()
    pairs = [(counts[0].get(name, 0.0), counts[1].get(name, 0.0)) for name in names]
    return sum(map(min, pairs)) / max(sum(map(max, pairs)), 1e-9)


def _versions(base: Capture, new: Capture) -> Iterator[Note]:
    if base.format != new.format:
        yield Note(
            "versions",
            f"BASE was recorded in the format {base.format}, NEW in {new.format}: profilers slow the host down differently",
        )
    for name in sorted(base.versions.keys() & new.versions.keys()):
        if base.versions[name] != new.versions[name] and base.format == new.format:
            yield Note("versions", f"{name}: {base.versions[name]} in BASE, {new.versions[name]} in NEW")


def _shapes(base: Capture, new: Capture) -> Iterator[Note]:
    """Other input shapes of operators that both have: another batch, sequence or model, and so another work."""
    one, other = (
        Counter({(shape.operator, shape.shapes): shape.count for shape in capture.shapes}) for capture in (base, new)
    )
    shared = {operator for operator, _ in one} & {operator for operator, _ in other}
    pairs = [{key: n for key, n in counts.items() if key[0] in shared} for counts in (one, other)]
    if not shared or not all(pairs):
        return
    common = sum(min(n, pairs[1].get(key, 0.0)) for key, n in pairs[0].items())
    if common >= SAME_SHAPES * min(sum(counts.values()) for counts in pairs):
        return
    operator, shape = max((key for key in pairs[0] if key not in pairs[1]), key=lambda key: (pairs[0][key], key))
    now = max(
        (key for key in pairs[1] if key[0] == operator and key not in pairs[0]),
        key=lambda key: (pairs[1][key], key),
        default=None,
    )
    instead = f", in NEW {now[1]}" if now else ""
    yield Note(
        "shapes",
        f"input shapes differ, so a step may not be the same work: most often {operator} has {shape} in BASE{instead}",
    )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _list(values: Sequence[object] | set[str]) -> str:
    return ", ".join(map(str, sorted(values, key=str) if isinstance(values, set) else values)) or "unknown"
