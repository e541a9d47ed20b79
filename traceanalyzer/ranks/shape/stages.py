"""The stages of a pipeline beside each other: what each computes in a step, how long it waits, and what equal ones would take.

A GPipe or 1F1B schedule of m micro-batches in p stages leaves (p - 1) / (m + p - 1) of a step empty (Narayanan et al., Efficient
Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC 2021, section 2.2.1). Interleaved schedules, in which a rank
has several stages, and those that fill bubbles with weight gradients leave less.
"""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from traceanalyzer.columns import frames
from traceanalyzer.columns.frames import NULL
from traceanalyzer.intervals import EMPTY, Array, coverage
from traceanalyzer.records import dataclass
from traceanalyzer.units import format_duration
from traceanalyzer.vocabulary.lines import COMPUTE, EXPOSED_COMMUNICATION, IDLE

UNEVEN = 1.2
"""A first stage has an embedding more and a last one a loss; one with a fifth more to compute than the mean has more layers."""
MOSTLY = 0.5
"""Where this share of the waiting is for what one stage computes more than the others, that is its cause, and not the schedule."""


@dataclass(frozen=True)
class Stages:
    """GPUs of pipelines, as (rank, device) of the tables, in order; medians over complete steps in ns: their length, computing, waiting
    for other ranks, and idle."""

    gpus: list[frames.Key]
    step: Array
    compute: Array
    wait: Array
    idle: Array

    @property
    def slowest(self) -> int:
        """The place of the GPU that computes longest."""
        return int(self.compute.argmax())

    @property
    def empty_share(self) -> float:
        """The share of steps in which GPUs wait or are idle."""
        return float((self.wait + self.idle).sum() / self.step.sum())

    @property
    def wait_share(self) -> float:
        return float(self.wait.sum() / self.step.sum())

    @property
    def uneven_share(self) -> float:
        """The share of the waiting that is no longer than what the slowest one computes more."""
        more = np.minimum(self.compute.max() - self.compute, self.wait)
        return float(more.sum() / self.wait.sum()) if self.wait.sum() else 0.0

    @property
    def uneven(self) -> bool:
        mean = float(self.compute.mean())
        return self.uneven_share >= MOSTLY and float(self.compute.max()) >= UNEVEN * mean

    @property
    def balanced_step(self) -> int:
        """About what a step would take were computing shared equally: all else stays as long as it is."""
        return int(self.compute.mean() + (self.step - self.compute)[self.slowest])


def stages_of(ranks: Array, step_ledger: pa.Table, waited_intervals: pa.Table) -> Stages | None:
    """The GPUs of these ranks; None where fewer than two of them have complete steps."""
    waits = {
        key: spans.filter(pa.array(frames.equals(spans, "line", EXPOSED_COMMUNICATION.name)))
        for key, spans in frames.split(waited_intervals)
    }
    gpus, rows = [], []
    for key, steps in frames.split(step_ledger):
        whole = steps.filter(steps["complete"])
        if key[0] not in ranks or not whole.num_rows:
            continue
        own = waits.get(key)
        spans = EMPTY if own is None else (frames.ints(own, "start_ns"), frames.ints(own, "end_ns"))
        start, end = frames.ints(whole, "start_ns"), frames.ints(whole, "end_ns")
        idle = np.sum([frames.ints(whole, line.column) for line in IDLE.values()], axis=0)
        times = end - start, frames.ints(whole, COMPUTE.column), coverage(start, end, spans), idle
        gpus.append(key)
        rows.append([int(np.median(time)) for time in times])
    if len(gpus) < 2:
        return None
    return Stages(gpus, *np.array(rows, np.int64).T)


def interleaved(ranks: Array, peers: Array, groups: list[str | None]) -> bool | None:
    """Whether ranks have several stages each: then the last of a group sends to the first. None where that cannot be told, as of two.

    One row a kernel of the pipeline: its rank, the one on the other side (`NULL` where not told), and the ranks of its group (JSON).
    """
    seen = False
    for text, rank, peer in {(g, r, p) for g, r, p in zip(groups, ranks.tolist(), peers.tolist(), strict=True)}:
        members = _members(text)
        if len(members) > 2 and rank in members and peer in members and peer != NULL:
            seen = True
            if abs(members.index(rank) - members.index(peer)) == len(members) - 1:
                return True
    return False if seen else None


def _members(text: str | None) -> list[int]:
    try:
        return msgspec.json.decode(text or "[]", type=list[int])
    except msgspec.DecodeError:
        return []


def uneven_words(found: Stages, names: list[str]) -> str:
    """Who waits for whom, with what each computes, as two sentences; `names` of its GPUs."""
    slow = found.slowest
    others = [at for at in range(len(names)) if at != slow]
    step, most, equal, waits, computes = (
        format_duration(int(ns))
        for ns in (
            *(found.step[slow], found.compute[slow], found.balanced_step),
            *(found.wait[others].mean(), found.compute[others].mean()),
        )
    )
    who = names[others[0]] if len(others) == 1 else "the others"
    waiting = f"{who} waits {waits}" if len(others) == 1 else f"{who} wait {waits} on the mean"
    return (
        f"{waiting[:1].upper()}{waiting[1:]} of each {step} step for {names[slow]}, which computes {most} of it, {who} {computes}: "
        f"the stages of the pipeline are uneven. Equal ones would take about {equal} a step."
    )
