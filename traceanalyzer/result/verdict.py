"""The verdict: what bounds the run, and the one sentence that says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from traceanalyzer.result.document import Verdict
from traceanalyzer.units import format_share

WORTH_A_SENTENCE = 0.05
"""A loss below this share of the window is no headline."""
WASTE_WORTH_A_SENTENCE = 0.10
"""Nor is computing that could be cheaper, which is estimated, below this one."""


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
    "host_untraced": Cause("host", "host time without a recorded call or range causes {points} points of it"),
    "launch": Cause("launch", "launching kernels causes {points} points of it"),
    "synchronization": Cause(
        "synchronization", "the host waiting for the GPU before it goes on causes {points} points of it"
    ),
    "memory_management": Cause("memory_management", "allocating and freeing memory causes {points} points of it"),
    "dependency": Cause("dependency", "waiting for another stream or device causes {points} points of it"),
    "queued": Cause(
        "queued",
        "for {points} points of it nothing recorded says why work that was launched did not run: that part could not be judged",
    ),
    "mpi": Cause("mpi", "waiting in MPI calls causes {points} points of it"),
    "os": Cause("os", "system calls of the launching thread cause {points} points of it"),
    "unattributed": Cause("unknown", "for {points} points of it the trace does not record what was launched when"),
    "profiler": Cause("unknown", "the profiler itself causes {points} points of it"),
    "communication": Cause("communication", "communication that no computation covers", idle=False),
    "memcpy": Cause("memcpy", "memory copies that no computation covers", idle=False),
    "memset": Cause("memcpy", "memsets that no computation covers", idle=False),
    "turnaround": Cause("unknown", "the hardware's hand-over from one operation to the next", idle=False),
}
MOST = 0.5
"""A finding that explains this share of a loss stands for it in the sentence."""
SOME = 0.25
"""Of a loss that is mostly not explained, a finding that explains this share, and most of what is."""
MIXED_MEMORY = "memory copies and memsets that no computation covers"
MIXED_HOST = (
    "the host between launches causes {points} points of it, {untraced} of them without a recorded call or range"
)
UNSEEN = "could not be judged for {share} of the time: work from before the recording, which it does not show, may have been running"
NOTHING_TO_JUDGE = "Could not judge: the trace holds no GPU work."
NO_DURATION = "Could not judge: none of the GPU operations in the trace has a duration."


@dataclass(frozen=True)
class Split:
    """One GPU's window in ns: its name in sentences, its length, its idle time, and all of it by cause or "compute".

    `waste` is what could be saved of computing, in ns, and what for: the title of the finding that says so. `sharper` are findings
    that say more of idle time than its cause does: by name of the cause, ns and title, the largest first. `waited` is how long the
    GPU communicates only to wait for others, in ns, and the sentence, without its stop, that explains it; `explained` is how much of
    its communication any finding explains, in ns. `unseen` is the idle time in which work from before the recording may have been
    running.
    """

    name: str
    window: int
    idle: int
    by_cause: Mapping[str, int]
    waste: tuple[int, str] | None = None
    sharper: tuple[tuple[str, int, str], ...] = ()
    waited: tuple[int, str] | None = None
    explained: int = 0
    unseen: int = 0

    @property
    def compute(self) -> float:
        """Share of the window that computes."""
        return self.share(self.by_cause.get("compute", 0))

    def share(self, ns: int) -> float:
        return ns / self.window if self.window else 0.0

    def main_loss(self) -> tuple[str, int]:
        """The largest loss, by the name of a cause, and its ns.

        Causes that `bound_by` calls the same count together, under the name of the largest; the unknown ones each for itself.
        """
        families: dict[str, list[str]] = {}
        for name, cause in CAUSES.items():
            families.setdefault(name if cause.bound_by == "unknown" else cause.bound_by, []).append(name)
        ns = {family: sum(self.by_cause.get(name, 0) for name in names) for family, names in families.items()}
        family = max(sorted(ns), key=lambda f: ns[f])
        return max(families[family], key=lambda name: self.by_cause.get(name, 0)), ns[family]


def judge(splits: list[Split], hidden: str | None = None) -> Verdict:
    """The verdict on the GPU that computes least, which is where there is most to gain. `hidden` says why none is possible.

    A GPU that computes at least half of the time is bound by computing, any other by its largest loss.
    """
    if not splits or hidden:
        return Verdict("unknown", hidden or NOTHING_TO_JUDGE)
    timed = [split for split in splits if split.window]
    if not timed:
        return Verdict("unknown", NO_DURATION)
    worst = min(timed, key=lambda split: split.compute)
    bound_by = "compute" if worst.compute >= 0.5 else CAUSES[worst.main_loss()[0]].bound_by
    if sentence := _of_the_job(worst):
        return Verdict(bound_by, f"{sentence}.")
    who, what = worst.name, _what(worst)
    if len(timed) > 1:
        alone = sum(split.compute == worst.compute for split in timed) == 1
        who += f" computes {'the least' if alone else 'as little as any'} of {len(timed)} GPUs: it"
    return Verdict(bound_by, f"{who[0].upper()}{who[1:]} {what}.")


def _of_the_job(split: Split) -> str | None:
    """What all GPUs together say, where a GPU loses most of its time to waiting for others."""
    name, ns = split.main_loss()
    waited, sentence = split.waited or (0, "")
    largest = CAUSES[name].bound_by == "communication" and split.share(waited) >= WORTH_A_SENTENCE
    least = MOST * ns if split.explained > waited / MOST else SOME * ns
    return sentence if largest and waited >= least else None


def _what(split: Split) -> str:
    """What one GPU does: the rest of a sentence that begins with its name."""
    name, ns = split.main_loss()
    cause, share = CAUSES[name], split.share(ns)
    computes = f"computes {format_share(split.compute)} of the time"
    if split.waste and split.waste[0] >= max(ns, WASTE_WORTH_A_SENTENCE * split.window):
        saved, title = split.waste
        return f"{computes}, up to {_points(split.share(saved))} points of which could be saved: {_clause_of(title)}"
    if share < WORTH_A_SENTENCE:
        return f"{computes}; nothing else takes as much as {WORTH_A_SENTENCE:.0%}"
    if cause.idle and split.unseen >= MOST * split.idle:
        return UNSEEN.format(share=format_share(split.share(split.unseen)))
    if cause.idle:
        return f"is idle {format_share(split.share(split.idle))} of the time; {_clause(split, cause, ns)}"
    mixed = cause.bound_by == "memcpy" and _mixed(split, ns, "memset")
    words = MIXED_MEMORY if mixed else cause.words
    if split.compute > share:
        return f"{computes}, and {format_share(share)} goes to {words}"
    return f"spends {format_share(share)} of the time on {words}"


def _clause_of(title: str) -> str:
    """A title within a sentence; one that begins with a name or an abbreviation keeps its capitals."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def _clause(split: Split, cause: Cause, ns: int) -> str:
    """How much of the idle time the cause takes. What is known and what is not recorded are kept apart."""
    for name, part, title in split.sharper:
        if CAUSES[name].bound_by == cause.bound_by and part >= MOST * ns:
            return f"for {_points(split.share(part))} points of that {_clause_of(title)}"
    mixed = cause.bound_by == "host" and _mixed(split, ns, "host_untraced")
    words = MIXED_HOST if mixed else cause.words
    untraced = split.share(split.by_cause.get("host_untraced", 0))
    return words.format(points=_points(split.share(ns)), untraced=_points(untraced))


def _mixed(split: Split, ns: int, name: str) -> bool:
    """Whether both the named cause and the rest of its family are large enough to be told apart in the sentence."""
    part = split.by_cause.get(name, 0)
    return min(part, ns - part) >= max(0.05 * ns, 0.01 * split.window)


def _points(share: float) -> str:
    return format_share(share).removesuffix("%") if share >= 0.995 else f"{share * 100:.0f}"
