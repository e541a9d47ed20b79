"""Whether two captures can be compared at all, and what is to be known of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from traceanalyzer.result.captures.capture import Capture, Unit, Work
from traceanalyzer.result.captures.metrics import why_unjudged
from traceanalyzer.result.comparing.comparison import Note
from traceanalyzer.result.settings import Settings, settings_apart, settings_sentence
from traceanalyzer.units import format_share

SAME_WORK = 0.9
"""Two units that nobody marked are the same work if so much of their kernels are the same."""
ALL_OF_IT = 0.98
"""A whole capture may have been cut anywhere: what it lacks of the other's kernels is no time that was saved."""
LIKELY_SAME_WORK = 0.6
"""Of steps that were found by their weight updates and the like, which is a sign of its own."""
OTHER_WORK = 0.5
"""Of marked steps, which are taken at their word; a fix may well replace most kernels."""
SAME_MIX = 0.88
"""A step that has the other one's kernels in these proportions, but more or fewer of all of them, is more or less work. Of five halves
of a step that are timed one kind is there three times, so proportions are not quite the same."""
MORE_OF_ALL = 1.25
SAME_SHAPES = 0.8
"""The share of calls with the same input shapes."""
MARKED = ("annotation", "nvtx")
COPIES = ("memcpy", "memset")
OPERATORS_KNOWN = 0.9
"""The share of a unit's work whose launching operator must be known for operators to be compared."""


def unlike(base: Capture, new: Capture, one: str = "BASE", other: str = "NEW") -> str | None:
    """Why figures of the two do not compare: other GPUs, another number of them or of ranks; what to call them is up to the caller.
    None when they do."""
    if _other_models(base, new):
        return f"{one} ran on {_list(_models(base))}, {other} on {_list(_models(new))}"
    if base.world_size and new.world_size and base.world_size != new.world_size:
        return f"{one} is a job of {_many(base.world_size, 'rank')}, {other} of {new.world_size}"
    if len(base.gpus) != len(new.gpus):
        return f"{one} shows {_many(len(base.gpus), 'GPU')}, {other} {len(new.gpus)}"
    return None


def _models(capture: Capture) -> set[str]:
    return {gpu for gpu in capture.gpus if gpu}


def _other_models(base: Capture, new: Capture) -> bool:
    """Whether they ran on other models of GPU, as far as that was recorded."""
    return bool(_models(base) and _models(new)) and _models(base) != _models(new)


def notes_on(base: Sequence[Capture], new: Sequence[Capture], anyway: bool) -> list[Note]:
    """What is to be known of the comparison, first what refuses it. Of several captures of one side all must be alike."""
    one, other = base[0], new[0]
    notes = [
        *_sound("BASE", base),
        *_sound("NEW", new),
        *_machines(base, new, anyway),
        *_of_one_program("BASE", base, anyway),
        *_of_one_program("NEW", new, anyway),
        *_units(one, other, anyway),
        *_versions(one, other),
        *_shapes(one, other),
        *_settings(one, other),
    ]
    return sorted(notes, key=lambda note: not note.refuses)


def _sound(side: str, captures: Sequence[Capture]) -> Iterator[Note]:
    for capture in captures:
        if capture.unjudged:
            yield Note("damage", f"{side} ({capture.name}) could not be judged: {why_unjudged(capture.unjudged)}", True)
        elif capture.no_unit:
            yield Note("unit", f"{side} ({capture.name}) has no unit of work: {capture.no_unit}", True)
        for text in capture.damage if not capture.unjudged else ():
            yield Note("damage", f"{side} ({capture.name}) is damaged: {text}")


def _machines(base: Sequence[Capture], new: Sequence[Capture], anyway: bool) -> Iterator[Note]:
    for side, captures in (("BASE", base), ("NEW", new)):
        told = (unlike(captures[0], capture, "one", "another") for capture in captures[1:])
        if apart := next(filter(None, told), None):
            words = f"{apart}{'; compared anyway' if anyway else ''}"
            yield Note("captures", f"the captures of {side} are not of one program on one machine: {words}", not anyway)
    if reason := unlike(base[0], new[0]):
        said = f"{reason}; compared anyway" if anyway else reason
        yield Note("gpu" if _other_models(base[0], new[0]) else "ranks", said, not anyway)
    elif base[0].ranks != new[0].ranks:
        yield Note("ranks", f"BASE holds ranks {_list(base[0].ranks)}, NEW ranks {_list(new[0].ranks)}")
    if not all(all(captures[0].gpus) for captures in (base, new)):
        yield Note("gpu", "not all traces say on which GPU they were recorded: whether it is the same is not known")


def unlike_work(base: Capture, new: Capture, one: str = "BASE", other: str = "NEW") -> str | None:
    """Why a unit of the two is not the same work; None when it is, as far as can be told."""
    return next((note.message for note in _units(base, new, False, one, other) if note.refuses), None)


def _of_one_program(side: str, captures: Sequence[Capture], anyway: bool) -> Iterator[Note]:
    """What refuses captures of one side, whose mean is taken."""
    for capture in captures[1:]:
        names = captures[0].name, capture.name
        refusing = (note for note in _units(captures[0], capture, anyway, *names) if note.refuses)
        if note := next(refusing, None):
            yield Note(note.about, f"the captures of {side} do not belong together: {note.message}", True)
            return


def _units(base: Capture, new: Capture, anyway: bool, before: str = "BASE", after: str = "NEW") -> Iterator[Note]:
    """Two units must be the same work: steps that the program marked are, others must show it. The last two are what to call them."""
    one, other = base.unit, new.unit
    if one is None or other is None:
        return
    alike = _likeness(base.kernels, new.kernels)
    if one.method in MARKED and other.method in MARKED:
        if _mix(base.kernels, new.kernels) >= SAME_MIX and alike < 1 / MORE_OF_ALL:
            said = (
                f"a step of {before} has {_many(round(one.kernels), 'kernel')}, one of {after} {round(other.kernels):,}, all kernels "
                "in the same proportions: steps are marked at other places, or are other work"
            )
            yield Note("work", f"{said}; compared anyway" if anyway else said, not anyway)
        elif alike < OTHER_WORK:
            same = "none" if not alike else f"only {format_share(alike)}"
            yield Note(
                "work",
                f"{same} of a step's kernels are the same, as after a rewrite; another program looks like that too",
            )
        return
    kinds = {one.kind, other.kind}
    least = LIKELY_SAME_WORK if kinds == {"step"} else ALL_OF_IT if "capture" in kinds else SAME_WORK
    if kinds == {"step"} and operators_known(base) and operators_known(new):
        # A fix may replace the kernels of most operators (another precision, another layout), and hardly the operators too.
        alike = max(alike, _likeness(base.operators, new.operators))
    if alike < least:
        message = (
            f"the units of work do not match: {before} has {_unit_words(one)}, {after} {_unit_words(other)}, and "
            f"{'none' if not alike else 'only ' + format_share(alike)} of their kernels are the same; mark the steps of both "
            "(prof.step() of torch.profiler, or an NVTX range a step) and record at least three"
        )
        yield Note("unit", message, True)
    else:
        yield Note(
            "unit", f"no steps are marked on both sides: {before} has {_unit_words(one)}, {after} {_unit_words(other)}"
        )


def operators_known(capture: Capture) -> bool:
    """Whether the operator behind nearly all of a unit's work is known; else what a trace does not show would look like a change."""
    done = sum(one.ns for one in capture.families)
    return sum(one.ns for one in capture.operators) >= OPERATORS_KNOWN * done > 0


def _unit_words(unit: Unit) -> str:
    kernels = _many(round(unit.kernels), "kernel")
    if unit.kind == "step":
        return f"steps of {kernels}" + ("" if unit.method in MARKED else ", found by repetition")
    return f"a sequence of {kernels} that repeats" if unit.kind == "repetition" else f"{kernels} without a repetition"


def _likeness(base: Sequence[Work], new: Sequence[Work]) -> float:
    """The share of kernels, by name and number, that both have."""
    pairs = _kernel_counts(base, new)
    return sum(map(min, pairs)) / max(sum(map(max, pairs)), 1e-9)


def _mix(base: Sequence[Work], new: Sequence[Work]) -> float:
    """The share of kernels that both have if one side had so many more of each that there are as many in all."""
    pairs = _kernel_counts(base, new)
    before, after = (max(sum(counts), 1e-9) for counts in zip(*pairs, strict=True)) if pairs else (1.0, 1.0)
    return sum(min(one / before, other / after) for one, other in pairs)


def _kernel_counts(base: Sequence[Work], new: Sequence[Work]) -> list[tuple[float, float]]:
    """How many of each kernel a unit of either side has; copies do not count."""
    one, other = (
        {work.name: work.count for work in works if not work.name.lower().startswith(COPIES)} for works in (base, new)
    )
    return [(one.get(name, 0.0), other.get(name, 0.0)) for name in sorted(one.keys() | other.keys())]


def _versions(base: Capture, new: Capture) -> Iterator[Note]:
    if base.format != new.format:
        yield Note(
            "versions",
            f"BASE was recorded in the format {base.format}, NEW in {new.format}: profilers slow the host down differently",
        )
    for name in sorted(base.versions.keys() & new.versions.keys()):
        if base.versions[name] != new.versions[name] and base.format == new.format:
            yield Note("versions", f"{name}: {base.versions[name]} in BASE, {new.versions[name]} in NEW")


def _settings(base: Capture, new: Capture) -> Iterator[Note]:
    """Other measures on one side, or on both: which findings there are depends on them."""
    said = settings_apart(base.settings, new.settings) or settings_sentence(new.settings or Settings())
    if said:
        yield Note("settings", said)


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
