"""The verdict: what bounds the run, and the one sentence that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TypeVar

from traceanalyzer.records import dataclass
from traceanalyzer.result.document import Finding, Result, Verdict
from traceanalyzer.result.roofline import Rate, added
from traceanalyzer.units import format_duration, format_share
from traceanalyzer.vocabulary.levels import HIGH, SEVERITIES
from traceanalyzer.vocabulary.lines import COMPUTE
from traceanalyzer.vocabulary.losses import (
    BY_COMMUNICATION,
    BY_COMPUTE,
    BY_HOST,
    BY_IMBALANCE,
    BY_MPI,
    CAUSES,
    COMMUNICATION,
    FAMILIES,
    HOST,
    HOST_UNTRACED,
    LAUNCH,
    LAUNCH_COPIES,
    MEMCPY,
    MEMSET,
    QUEUED,
    START_UP,
    UNKNOWN,
    Cause,
)

Key = TypeVar("Key", bound=Hashable)
WORTH_A_SENTENCE = 0.05
"""A loss below this share of the window is no headline."""
WASTE_WORTH_A_SENTENCE = 0.10
"""Nor is computing that could be cheaper, which is estimated, below this one."""


COMPUTES = 0.5
"""What computes this share of the time is bound by computing."""
MIXED = {
    MEMCPY.name: (MEMSET.name, "memory copies and memsets that no computation covers"),
    LAUNCH.name: (LAUNCH_COPIES.name, "launching kernels and copies costs {much}"),
    HOST.name: (
        HOST_UNTRACED.name,
        "the host between launches costs {much}, {part} of it without a recorded call or range",
    ),
}
"""By `bound_by`: the other cause of its family, and what is said where both are large."""
START_UP_FIRST = 0.25
"""From this share of the window on, start-up is said first, and the rest is judged without it: a longer run pays it no second time."""
MOST = 0.5
"""A finding that explains this share of a loss stands for it in the sentence; a place that causes it, too."""
SOME = 0.25
"""Of a loss that is mostly not explained, a finding that explains this share, and most of what is."""
NEARLY = 0.75
"""Waiting for others stands for a job also where one cause of idle time is that much larger: that is what they wait for."""
APART, TIMES = 0.10, 2
"""A GPU stands out that loses this share of its window more than any other, and so many times what the others lose."""
_UNJUDGED = "Could not judge: "


def unjudged_headline(reason: str) -> str:
    """The headline of a trace that cannot be judged."""
    return f"{_UNJUDGED}{reason}."


def reason_of(headline: str) -> str:
    """What `unjudged_headline` was given; of any other headline, itself without its stop."""
    return headline.removeprefix(_UNJUDGED).removesuffix(".")


NOTHING_TO_JUDGE = unjudged_headline("the trace holds no GPU work")
NOTHING_READ = unjudged_headline("nothing that can be judged was read")
NO_DURATION = unjudged_headline("none of the GPU operations in the trace has a duration")


@dataclass(frozen=True)
class Pace:
    """The steps of a GPU: their mean length in ns, and whether all take about as long."""

    ns: int
    even: bool


@dataclass(frozen=True)
class Culprit:
    """What causes `ns` of a loss of the family `bound_by`: the subject of a sentence. A lower `level` says more.

    `step` is how much that is of a step and how long a step is, where a finding says so.
    """

    bound_by: str
    level: int
    subject: str
    ns: int
    step: tuple[int, int] | None = None


@dataclass(frozen=True)
class Split:
    """One GPU's window in ns, or those of several together: its name in sentences, its length, its idle time, and all of it by cause or
    "compute". `gpus` is how many they are.

    `waste` is what could be saved of computing, in ns, and what for: the title of the finding that says so. `sharper` are findings
    that say more of a loss than its cause does: by name of the cause, ns and title, the largest first. `waited` is how long the
    GPU communicates only to wait for others, in ns, and the sentence, without its stop, that explains it; `explained` is how much of
    its communication and calls of MPI any finding explains, in ns. `beside` is what a finding says that no time can be given for: a
    leak. `calls` is how long it waits and sends in many small collectives that the hosts ask for one by one, in ns, and what is said of
    that. `apart` is how long it communicates, in ns, while not all ranks record, of which nothing can be told. `unseen` is the
    idle time in which work from before the recording may have been running. `rate` is what its matrix work
    reaches, where that is known.
    """

    name: str
    window: int
    idle: int
    by_cause: Mapping[str, int]
    waste: tuple[int, str] | None = None
    sharper: tuple[tuple[str, int, str], ...] = ()
    waited: tuple[int, str] | None = None
    explained: int = 0
    culprits: tuple[Culprit, ...] = ()
    pace: Pace | None = None
    beside: str | None = None
    unseen: int = 0
    gpus: int = 1
    rate: Rate | None = None
    calls: tuple[int, str] | None = None
    apart: int = 0

    @property
    def compute(self) -> float:
        """Share of the window that computes."""
        return self.share(self.by_cause.get(COMPUTE.name, 0))

    def share(self, ns: int) -> float:
        return ns / self.window if self.window else 0.0

    def lost(self, family: str) -> int:
        """ns lost to all causes of one of FAMILIES."""
        return sum(self.by_cause.get(name, 0) for name in FAMILIES[family])

    def main_loss(self, idle: bool = False) -> tuple[str, int]:
        """The largest loss, or that of idle time, by the name of a cause, and its ns. A family counts together, under the name of its
        largest cause."""
        families = [name for name, causes in FAMILIES.items() if CAUSES[causes[0]].idle or not idle]
        family = max(sorted(families), key=self.lost)
        return max(FAMILIES[family], key=lambda name: self.by_cause.get(name, 0)), self.lost(family)

    def much(self, ns: int, step: tuple[int, int] | None = None) -> str:
        """How much time that is: of a step where they are known, else of the window; of several GPUs, their mean."""
        if self.pace is None:
            return f"{format_duration(ns / self.gpus)} of {format_duration(self.window / self.gpus)}"
        part, whole = step or (self.share(ns) * self.pace.ns, self.pace.ns)
        each = "each" if self.pace.even else "the average"
        return f"{format_duration(part)} of {each} {format_duration(whole)} step"

    def does(self, one: str, several: str) -> str:
        """The beginning of a sentence: who, and the verb for one GPU or several."""
        return f"{self.name[:1].upper()}{self.name[1:]} {one if self.gpus == 1 else several}"


def judge(splits: Sequence[Split], hidden: str | None = None) -> Verdict:
    """The verdict on all GPUs together. `hidden` says why none is possible.

    What computes at least half of the time is bound by computing, any other by its largest loss. A GPU is named where it stands out.
    """
    if not splits or hidden:
        return Verdict(UNKNOWN.name, hidden or NOTHING_TO_JUDGE)
    timed = [split for split in splits if split.window]
    if not timed:
        return Verdict(UNKNOWN.name, NO_DURATION)
    apart = max(split.apart for split in timed)
    together = [one for one in map(_while_all_record, timed) if one.window]
    if together and apart >= MOST * max(split.window for split in timed):
        left = judge(together)
        note = f"Left out: up to {format_duration(apart)} in which a rank only waits until all ranks record."
        return replace(left, headline=f"{left.headline} {note}")
    job = job_split(timed)
    started = job.by_cause.get(START_UP.name, 0)
    if job.share(started) < START_UP_FIRST:
        return _judged(timed, job)
    part, whole = (format_duration(ns / job.gpus) for ns in (started, job.window))
    said = f"{part} of the {whole} judged are start-up, which is paid once"
    warm = [one for one in map(_without_start_up, timed) if one.window]
    if not warm:
        return Verdict(BY_HOST.name, f"{said}.")
    left = _judged(warm, job_split(warm))
    length = format_duration(sum(one.window for one in warm) // len(warm))
    return Verdict(left.bound_by, f"{said}; in the {length} left, {within(left.headline)}")


def verdict_on_evidence(result: Result, first_sentences: Mapping[str, str], headlines: Sequence[str]) -> Verdict:
    """The verdict where no trace was given, so that there is no time to be bound by anything; `first_sentences` of the findings by
    message, and `headlines` of what is shown where nothing was found, without their stops."""
    if (grave := next((note for note in result.health if note.severity == HIGH), None)) is not None:
        return Verdict(UNKNOWN.name, unjudged_headline(grave.message))
    if not any(one.rows for one in result.evidence):
        return Verdict(UNKNOWN.name, NOTHING_READ)
    if worst := [finding for level in reversed(SEVERITIES) for finding in result.findings if finding.severity == level]:
        return Verdict(UNKNOWN.name, f"{first_sentences[worst[0].message]}.")
    return Verdict(UNKNOWN.name, " ".join(f"{one}." for one in headlines) or "Nothing worth fixing was found.")


def with_evidence(
    verdict: Verdict, about: Sequence[Finding], first_sentences: Mapping[str, str], headlines: Sequence[str]
) -> Verdict:
    """The verdict, with a sentence more on what evidence beside the traces tells: the gravest of the findings `about` it, else its
    `headlines`."""
    worst = next((one for level in reversed(SEVERITIES) for one in about if one.severity == level), None)
    if worst is None:
        return replace(verdict, headline=" ".join([verdict.headline, *(f"{one}." for one in headlines)]))
    said = first_sentences[worst.message]
    if said.lower() in verdict.headline.lower():
        return verdict
    return replace(verdict, headline=f"{verdict.headline} {said}.")


def _judged(timed: Sequence[Split], job: Split) -> Verdict:
    told = _of_the_job(job) or _sentence(_standing_out(timed, job) or job)
    if job.calls and job.gpus * job.calls[0] >= WASTE_WORTH_A_SENTENCE * job.window:
        # What changes most for all of them comes first.
        told = f"{job.calls[1]}; {within(told)}"
    bound_by = BY_COMPUTE.name if job.compute >= COMPUTES else CAUSES[job.main_loss()[0]].bound_by
    return Verdict(bound_by, f"{told}.")


def _without_start_up(split: Split) -> Split:
    started = split.by_cause.get(START_UP.name, 0)
    return replace(
        split,
        window=split.window - started,
        idle=split.idle - started,
        by_cause={**split.by_cause, START_UP.name: 0},
        sharper=tuple(one for one in split.sharper if one[0] != START_UP.name),
        pace=None,
    )


def _while_all_record(split: Split) -> Split:
    ns = min(split.apart, split.by_cause.get(COMMUNICATION.name, 0))
    if not ns:
        return replace(split, apart=0)
    causes = {**split.by_cause, COMMUNICATION.name: split.by_cause[COMMUNICATION.name] - ns}
    return replace(split, window=split.window - ns, by_cause=causes, pace=None, apart=0)


def job_split(splits: Sequence[Split]) -> Split:
    """The GPUs of a job as one: all of their time, added up."""
    if len(splits) == 1:
        return splits[0]
    causes = dict.fromkeys(name for split in splits for name in split.by_cause)
    paces = [split.pace for split in splits if split.pace]
    culprits = _added(((one.bound_by, one.level, one.subject), one.ns) for split in splits for one in split.culprits)
    sharper = _added(((cause, title), ns) for split in splits for cause, ns, title in split.sharper)
    waste = _added((split.waste[1], split.waste[0]) for split in splits if split.waste)
    waited = _added((split.waited[1], split.waited[0]) for split in splits if split.waited)
    return Split(
        f"the {len(splits)} GPUs",
        sum(split.window for split in splits),
        sum(split.idle for split in splits),
        {cause: sum(split.by_cause.get(cause, 0) for split in splits) for cause in causes},
        waste=(waste[0][1], waste[0][0]) if waste else None,
        sharper=tuple((cause, ns, title) for (cause, title), ns in sharper),
        waited=(waited[0][1], waited[0][0]) if waited else None,
        explained=sum(split.explained for split in splits),
        culprits=tuple(Culprit(*key, ns) for key, ns in culprits),
        pace=Pace(round(median(pace.ns for pace in paces)), all(pace.even for pace in paces))
        if len(paces) == len(splits)
        else None,
        unseen=sum(split.unseen for split in splits),
        beside=next((split.beside for split in splits if split.beside), None),
        gpus=len(splits),
        calls=max((split.calls for split in splits if split.calls), default=None),
        rate=added([split.rate for split in splits if split.rate]) if all(split.rate for split in splits) else None,
    )


def one_gpu(portions: Sequence[Split], name: str, window: int) -> Split:
    """The portions that several files have of one GPU's ledger as that GPU, whose window is `window` ns long.

    Where several compute at once that is one time of the GPU: it computes in all of its window that is nothing else.
    """
    every = job_split(portions)
    others = {cause: ns for cause, ns in every.by_cause.items() if cause != COMPUTE.name}
    return replace(
        every, name=name, window=window, by_cause={COMPUTE.name: window - sum(others.values()), **others}, gpus=1
    )


def _added(items: Iterable[tuple[Key, int]]) -> list[tuple[Key, int]]:
    """The sums by key, the largest first."""
    sums: Counter[Key] = Counter()
    for key, ns in items:
        sums[key] += ns
    return sums.most_common()


def _standing_out(splits: Sequence[Split], job: Split) -> Split | None:
    """The one GPU that has most of the job's largest loss, where the others have clearly less of it."""
    if len(splits) < 2:
        return None
    main = job.main_loss()[0]
    family = next(name for name, causes in FAMILIES.items() if main in causes)
    first, second, *_ = sorted(splits, key=lambda split: -split.share(split.lost(family)))
    own, next_to_it = (split.share(split.lost(family)) for split in (first, second))
    if own < next_to_it + APART or own < TIMES * next_to_it:
        return None
    others = f"the other {len(splits) - 1} GPUs" if len(splits) > 2 else second.name
    return replace(first, name=f"{first.name}, unlike {others},")


def _of_the_job(split: Split) -> str | None:
    """What all GPUs together say, where they lose most to waiting for one another."""
    name, ns = split.main_loss()
    waited, sentence = split.waited or (0, "")
    if sentence and split.calls:
        waited += split.calls[0]
    largest = CAUSES[name].bound in (BY_COMMUNICATION, BY_IMBALANCE, BY_MPI) and split.share(waited) >= WORTH_A_SENTENCE
    least = MOST * ns if split.explained > waited / MOST else SOME * ns
    idle = 0 if CAUSES[name].idle else split.main_loss(idle=True)[1]
    return sentence if largest and waited >= max(least, NEARLY * idle) else None


def _sentence(split: Split) -> str:
    """What the GPU does, without the stop."""
    name, ns = split.main_loss()
    cause, share = CAUSES[name], split.share(ns)
    computes = f"{split.does('computes', 'compute')} {format_share(split.compute)} of the time"
    bound = split.rate is not None and split.compute >= COMPUTES
    reaches = split.rate.words("its" if split.gpus == 1 else "their") if split.rate and bound else ""
    computing = f"{computes}; {reaches}" if reaches else computes
    if split.waste and split.waste[0] >= max(ns, WASTE_WORTH_A_SENTENCE * split.window):
        saved, title = split.waste
        return f"{computing}; about {split.much(saved)} could be saved: {within(title)}"
    if share < WORTH_A_SENTENCE:
        nothing = f"nothing else takes as much as {WORTH_A_SENTENCE:.0%}"
        return f"{computing}; {split.beside}" if split.beside else f"{computing}{', and' if reaches else ';'} {nothing}"
    if cause.idle:
        return _idle(split, cause, ns)
    words, title = _words(split, cause, ns), (_sharper(split, cause, ns) or ("", 0, ""))[2]
    # "Communication that is queued behind computation" says all that "communication that no computation covers" does.
    if title.split(" ")[0].lower() == words.split(" ")[0]:
        words, title = within(title), ""
    if split.share(split.idle) > max(share, split.compute):
        largest, lost = split.main_loss(idle=True)
        return f"{_idle(split, CAUSES[largest], lost)}, and {format_share(share)} of the time goes to {words}"
    if split.compute > share:
        told = f"{computes}, and {format_share(share)} ({split.much(ns)}) goes to {words}"
    else:
        told = f"{split.does('spends', 'spend')} {format_share(share)} of the time ({split.much(ns)}) on {words}"
    told = f"{told}: {within(title)}" if title else told
    return f"{told}; {reaches}" if reaches else told


def _idle(split: Split, cause: Cause, ns: int) -> str:
    """Why the GPU stands idle: who causes most of the largest loss, or else what."""
    share = format_share(split.share(split.idle))
    if split.unseen >= MOST * split.idle:
        unseen = format_share(split.share(split.unseen))
        return f"Could not judge {unseen} of the time: work from before the recording, which it does not show, may have been running"
    if split.by_cause.get(QUEUED.name, 0) >= MOST * split.idle:
        why = "work was launched, and nothing recorded says why it did not run"
        who = f"{split.name} {'is' if split.gpus == 1 else 'are'}"
        return f"Could not judge why {who} idle {share} of the time: {why}"
    least = max(MOST * ns, WORTH_A_SENTENCE * split.window)
    guilty = [one for one in split.culprits if one.bound_by == cause.bound_by and one.ns >= least]
    if guilty:
        first = min(guilty, key=lambda one: (one.level, -one.ns))
        return f"{first.subject} leaves {split.name} idle {split.much(first.ns, first.step)}"
    idle = f"{split.does('is', 'are')} idle {share} of the time"
    if told := _sharper(split, cause, ns):
        name, part, title = told
        # What is paid once is no cost of a step.
        whole = replace(split, pace=None) if name == START_UP.name else split
        return f"{idle}; {within(title)}: {whole.much(part)}"
    untraced = format_share(split.by_cause.get(HOST_UNTRACED.name, 0) / ns)
    return f"{idle}; {_words(split, cause, ns).format(much=split.much(ns), part=untraced)}"


def _sharper(split: Split, cause: Cause, ns: int) -> tuple[str, int, str] | None:
    """The finding that explains most of a loss, and how much: name of the cause, ns and title."""
    found = (
        (name, part, title)
        for name, part, title in split.sharper
        if CAUSES[name].bound_by == cause.bound_by and part >= MOST * ns
    )
    return next(found, None)


def _words(split: Split, cause: Cause, ns: int) -> str:
    """What the cause is called. What is known and what is not recorded are kept apart."""
    other, words = MIXED.get(cause.bound_by, ("", ""))
    part = split.by_cause.get(other, 0)
    mixed = min(part, ns - part) >= max(0.05 * ns, 0.01 * split.window)
    return words if other and mixed else cause.words


def within(sentence: str) -> str:
    """A sentence within another; one that begins with a name or an abbreviation keeps its capitals."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]
