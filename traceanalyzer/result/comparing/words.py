"""What a comparison says, in short pieces that text, Markdown and HTML share."""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.records import dataclass
from traceanalyzer.result.comparing.comparison import Change, Comparison, Note, ProblemChange, Side
from traceanalyzer.units import format_count, format_duration, format_share

LARGE = 0.05
"""A ledger line with at least this share of a step is shown even where it did not change."""
TIMES = 2.0
"""From here on a ratio is said as "3.2×" and no longer as "+220%"."""
TINY = 0.001
"""A spread below this is only said to be below it."""
NEARLY_ALL = 0.999
"""The most that is said to be gone of what is not all gone."""
UNIT_WORDS = {"step": "a step", "repetition": "once through the repeated kernels", "capture": "the whole capture"}
COUNT_WORDS = {
    "step": ("step", "steps"),
    "repetition": ("repetition", "repetitions"),
    "capture": ("capture", "captures"),
}
STATE_WORDS = {
    "fixed": "fixed",
    "new": "new",
    "worse": "worse",
    "better": "better",
    "uncovered": "uncovered",
    "unknown": "could not judge",
    "same": "no change",
}
"""By state, in the order in which they are shown."""
UNCOVERED = "was there before, as a smaller share of the time or under another finding"
ABOUT_WORDS = {"gpu": "GPU", "unit": "unit of work"}
"""What a note is about, where its own name would not do."""
ADVICE = {
    "gpu": "Record both on the same model of GPU. --anyway compares them all the same, and then the GPU is one of the reasons.",
    "captures": "Name captures of one program on one machine on each side. --anyway compares them all the same.",
    "ranks": "Record both with the same number of ranks and GPUs, and name the folder with all of them. --anyway compares them all "
    "the same.",
    "unit": "Mark steps in both programs: prof.step() of torch.profiler, or NVTX ranges named step_N; record at least three.",
    "damage": "Record again what is damaged; `traceanalyzer doctor` says what is wrong with a file and how to record the next one.",
    "": "`traceanalyzer doctor` says of each file what it holds and lacks, and how to record the next one.",
}
"""What to do, by what a refusing note is about."""
NO_NOISE = "Record several steps on both sides, or name more captures of the same programs: --more-base and --more-new."


def unit_words(comparison: Comparison) -> str:
    """What all times are of: "a step"."""
    return UNIT_WORDS.get(comparison.new.unit or comparison.base.unit or "", "a unit of work")


def advice(comparison: Comparison) -> list[str]:
    """What to do to be able to compare, where nothing could be judged; by what refuses."""
    about = dict.fromkeys(note.about for note in comparison.notes if note.refuses)
    told = list(dict.fromkeys(ADVICE.get(one, ADVICE[""]) for one in about))
    return told or [NO_NOISE if comparison.step is not None else ADVICE[""]]


def about_words(note: Note) -> str:
    return ABOUT_WORDS.get(note.about, note.about)


def side_words(side: Side, spread: float | None) -> list[str]:
    """Clauses on one side: its GPUs, what was timed, and how long that took. `spread` as in Noise."""
    gpus = side.gpu or "GPU not recorded"
    if not side.gpu_count:
        return ["no GPU work"]
    said = [f"{side.gpu_count} × {gpus}" if side.gpu_count > 1 else gpus]
    if side.captures > 1:
        said.append(f"{side.captures} captures")
    if side.unit and side.unit_ns is not None:
        one, many = COUNT_WORDS.get(side.unit, ("unit", "units"))
        how = f" ({side.method})" if side.method and side.unit == "step" else ""
        said.append(f"{format_count(side.unit_count)} {one if side.unit_count == 1 else many}{how}")
        each = "" if side.unit_count == 1 else " on average"
        varies = (
            ""
            if spread is None
            else f", ±{format_share(spread)}"
            if spread >= TINY
            else f", under ±{format_share(TINY)}"
        )
        said.append(f"{format_duration(side.unit_ns)}{each}{varies}")
    return said


def noise_words(comparison: Comparison) -> str:
    """How sure all this is, in one sentence without its stop."""
    noise = comparison.noise
    if noise.source is None:
        return (
            "Noise could not be measured: record several steps, or name more captures with --more-base and --more-new"
        )
    of = "from step to step" if noise.source == "steps" else "from capture to capture"
    spreads = [
        f"{name} varies by {format_share(spread)}".replace("<", "less than ")
        for name, spread in (("BASE", noise.base), ("NEW", noise.new))
        if spread is not None
    ]
    varies = f"{of}, {' and '.join(spreads)}; " if spreads else ""
    return f"Noise: {varies}changes below {format_share(noise.least)} do not count; ranges hold with {format_share(noise.level)}"


def signed_duration(ns: int) -> str:
    """ "+1.2 ms", "-3 us"; "0" for none."""
    return f"{'+' if ns > 0 else '-'}{format_duration(abs(ns))}" if ns else "0"


def ratio_words(ratio: float, times: bool | None = None) -> str:
    """How much more or less: 0.5 is "-50%", 1.12 is "+12%", 3.2 is "3.2×", the latter where `times` says so, else from TIMES on.

    A little is never shown as nothing, nor nearly all as all.
    """
    if ratio >= TIMES if times is None else times:
        return f"{ratio:,.0f}×" if ratio >= 99.95 else f"{ratio:.3g}×"
    change = ratio - 1
    if change == 0:
        return "0%"
    share = min(abs(change), NEARLY_ALL) if 0 < ratio < 1 else abs(change)
    words = format_share(share) if share < 0.995 or share >= 1 else f"{share * 100:.1f}%"
    return f"{'+' if change > 0 else '-'}{words}"


def short_words(change: Change) -> str:
    """The change as a share of what there was: "-34%", "3.2×", "new", "gone"; "same" for none."""
    if change.direction == "same":
        return "same"
    if change.direction in ("new", "vanished") or change.ratio is None:
        return "new" if not change.base_ns else "gone"
    return ratio_words(change.ratio)


def relative_words(change: Change) -> str:
    """The same with its interval: "-34% (-36% to -32%)", "new", "gone", "no change"."""
    said = short_words(change)
    if change.direction == "same":
        return "no change"
    if change.ratio is None or change.low is None or change.high is None:
        return said
    low, high = (ratio_words(end, change.ratio >= TIMES) for end in (change.low, change.high))
    return said if low == high == said else f"{said} ({low} to {high})"


def count_words(change: Change) -> str | None:
    """How often it runs a unit, where that changed: "60 → 17 times"; None where it did not, or where there is no other side."""
    if not change.base_count or not change.new_count:
        return None
    base, new = format_count(change.base_count), format_count(change.new_count)
    return f"{base} → {new} times" if base != new else None


def duration_or_none(ns: int | None) -> str:
    """A time, or a dash where there is none."""
    return "-" if ns is None else format_duration(ns)


@dataclass(frozen=True)
class Lines:
    """Ledger lines to show, by size of their change, and those that are folded: how many, and their times added up."""

    shown: list[Change]
    folded: int
    base_ns: int
    new_ns: int

    @property
    def rest(self) -> Change | None:
        """The folded ones as one; None where all are shown."""
        if not self.folded:
            return None
        name = f"{self.folded} more line{'s' if self.folded > 1 else ''}"
        return Change(name, self.base_ns, self.new_ns, self.new_ns - self.base_ns, None, None, None, "same")


def ledger_lines(comparison: Comparison) -> Lines:
    """Those that changed or are large. What is shown and what is folded add up to the step."""
    step = max((ns for ns in (comparison.base.unit_ns, comparison.new.unit_ns) if ns), default=0)
    shown = [
        line
        for line in comparison.lines
        if line.direction != "same" or max(line.base_ns or 0, line.new_ns or 0) >= LARGE * step
    ]
    folded = [line for line in comparison.lines if line not in shown]
    shown.sort(key=lambda line: -abs(line.change_ns))
    return Lines(
        shown, len(folded), sum(line.base_ns or 0 for line in folded), sum(line.new_ns or 0 for line in folded)
    )


@dataclass(frozen=True)
class Moved:
    """Things that got slower (or are new) and faster (or are gone), the largest change first; `left` more of them are not shown, and
    `same` did not change. The times are those of all that moved: what it comes to in either direction."""

    slower: list[Change]
    faster: list[Change]
    left: int
    same: int
    slower_ns: int
    faster_ns: int

    def left_words(self) -> str | None:
        """What is not shown, if anything: "and 3 more that changed, 40 that did not"."""
        said = [f"{format_count(self.left)} more that changed"] if self.left else []
        said += [f"{format_count(self.same)} that did not change"] if self.same else []
        return f"and {', '.join(said)}" if said else None


def movers(changes: Sequence[Change], most: int) -> Moved:
    """At most `most` in each direction."""
    ordered = sorted(
        (one for one in changes if one.direction != "same"), key=lambda one: (-abs(one.change_ns), one.name)
    )
    slower = [one for one in ordered if one.change_ns > 0]
    faster = [one for one in ordered if one.change_ns <= 0]
    left = max(len(slower) - most, 0) + max(len(faster) - most, 0)
    return Moved(
        slower[:most],
        faster[:most],
        left,
        len(changes) - len(ordered),
        sum(one.change_ns for one in slower),
        sum(one.change_ns for one in faster),
    )


def by_state(problems: Sequence[ProblemChange]) -> dict[str, list[ProblemChange]]:
    """Findings by state in the order of STATE_WORDS, the largest first; states without any are left out."""
    groups: dict[str, list[ProblemChange]] = {state: [] for state in STATE_WORDS}
    for problem in problems:
        groups.setdefault(problem.state, []).append(problem)
    for group in groups.values():
        group.sort(key=lambda one: (-max(one.base_ns or 0, one.new_ns or 0), one.rule))
    return {state: group for state, group in groups.items() if group}


def problem_words(problem: ProblemChange) -> str:
    """What became of a finding, without its title: "8 ms a step, now none"."""
    base, new = problem.base_ns, problem.new_ns
    if problem.state == "unknown":
        return problem.reason or "could not be judged on both sides"
    if problem.state == "uncovered":
        return UNCOVERED if new is None else f"{format_duration(new)}: {UNCOVERED}"
    if not base and not new:
        return _severities(problem)
    if problem.state == "fixed":
        return f"{format_duration(base or 0)} before, now {'none' if not new else format_duration(new)}"
    if problem.state == "new":
        return f"{format_duration(new or 0)}, {'none' if not base else format_duration(base)} before"
    return f"{duration_or_none(base)} before, now {duration_or_none(new)}"


def _severities(problem: ProblemChange) -> str:
    """Of findings that account for no time, what they were called."""
    before, now = problem.base_severity or "none", problem.new_severity or "none"
    return f"severity {now}" if before == now else f"severity {before} before, now {now}"
