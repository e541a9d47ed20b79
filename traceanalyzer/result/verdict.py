"""The verdict: what bounds the run, and the one sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from traceanalyzer.result.document import Verdict
from traceanalyzer.units import format_share

WORTH_A_SENTENCE = 0.05
"""A loss below this share of the window is no headline."""


@dataclass(frozen=True)
class Cause:
    """A kind of lost time: what `bound_by` calls it, what the sentence says, and whether the GPU stands idle meanwhile.

    For idle time `words` is the clause that says how many of the idle points it causes; else it is what takes the time.
    """

    bound_by: str
    words: str
    idle: bool = True


CAUSES: dict[str, Cause] = {
    "input": Cause("input", "the data loader causes {points} points of it"),
    "host": Cause("host", "work on the host between launches causes {points} points of it"),
    "host_untraced": Cause("host", "host time in which nothing was recorded causes {points} points of it"),
    "launch": Cause("launch", "launching kernels one by one causes {points} points of it"),
    "synchronization": Cause(
        "synchronization", "the host waiting for the GPU before it goes on causes {points} points of it"
    ),
    "memory_management": Cause("memory_management", "allocating and freeing memory causes {points} points of it"),
    "dependency": Cause("dependency", "waiting for another stream or device causes {points} points of it"),
    "unattributed": Cause("unknown", "for {points} points of it the trace does not record what was launched when"),
    "profiler": Cause("unknown", "the profiler itself causes {points} points of it"),
    "communication": Cause("communication", "communication that no computation covers", idle=False),
    "memcpy": Cause("memcpy", "memory copies that no computation covers", idle=False),
    "turnaround": Cause("unknown", "the hardware's hand-over from one operation to the next", idle=False),
}
NOTHING_TO_JUDGE = "Could not judge: the trace holds no GPU work."


@dataclass(frozen=True)
class Split:
    """One GPU's window in ns: its name in sentences, its length, its idle time, and all of it by cause or "compute"."""

    name: str
    window: int
    idle: int
    by_cause: Mapping[str, int]

    @property
    def compute(self) -> float:
        """Share of the window that computes."""
        return self.share(self.by_cause.get("compute", 0))

    def share(self, ns: int) -> float:
        return ns / self.window if self.window else 0.0

    def bounds(self) -> dict[str, int]:
        """ns by what `bound_by` may say."""
        sums = {"compute": self.by_cause.get("compute", 0)}
        for name, cause in CAUSES.items():
            sums[cause.bound_by] = sums.get(cause.bound_by, 0) + self.by_cause.get(name, 0)
        return sums


def judge(splits: list[Split], hidden: str | None = None) -> Verdict:
    """The verdict on the GPU that computes least, which is where there is most to gain. `hidden` says why none is possible."""
    if not splits or hidden:
        return Verdict("unknown", hidden or NOTHING_TO_JUDGE)
    worst = min(splits, key=lambda split: split.compute)
    bounds = worst.bounds()
    return Verdict(max(sorted(bounds), key=lambda name: bounds[name]), _sentence(worst, len(splits)))


def _sentence(split: Split, gpus: int) -> str:
    cause, ns = _main_loss(split)
    share = split.share(ns)
    computes = f"computes {format_share(split.compute)} of the time"
    who = split.name if gpus == 1 else f"{split.name}, the least used of {gpus},"
    if share < WORTH_A_SENTENCE:
        return f"{who} {computes}; nothing else takes as much as {WORTH_A_SENTENCE:.0%}."
    if cause.idle:
        clause = cause.words.format(points=round(share * 100))
        return f"{who} is idle {format_share(split.share(split.idle))} of the time; {clause}."
    if split.compute > share:
        return f"{who} {computes}, and {format_share(share)} goes to {cause.words}."
    return f"{who} spends {format_share(share)} of the time on {cause.words}."


def _main_loss(split: Split) -> tuple[Cause, int]:
    """The largest loss and its ns. Causes that `bound_by` calls the same count together, in the words of the larger one."""
    families: dict[str, list[str]] = {}
    for name, cause in CAUSES.items():
        families.setdefault(name if cause.bound_by == "unknown" else cause.bound_by, []).append(name)
    ns = {family: sum(split.by_cause.get(name, 0) for name in names) for family, names in families.items()}
    family = max(sorted(ns), key=lambda f: ns[f])
    leader = max(families[family], key=lambda name: split.by_cause.get(name, 0))
    return CAUSES[leader], ns[family]
