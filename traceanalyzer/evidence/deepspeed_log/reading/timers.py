"""Lines of timers, of progress and of single calls: "time (ms) | fwd: 1.31 | bwd: 11.21 | step: 11.68"."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from traceanalyzer.evidence.deepspeed_log.reading.lines import logged_at, rank_of
from traceanalyzer.evidence.deepspeed_log.reading.quantities import NUMBER, milliseconds, ns_of, number, size
from traceanalyzer.evidence.deepspeed_log.tables import MICRO, OPTIMIZER, OTHER, PIPE, STEP

MARK = "time (ms) | "
_NAME = re.compile(r"\w[\w ./-]{0,60}")
_OF_EXPERTS = re.compile(rf"(?:fwd|forward): {NUMBER} \(([^()]{{1,400}})\)\s*")
"""What is printed of mixtures of experts beside the forward pass, which the line of the step has too."""
_LONG = (("forward", "fwd"), ("backward", "bwd"))
"""Timers before DeepSpeed 0.10, and how they are called since."""
_CALL = re.compile(
    rf"comm op: ([\w ]+?)(?: \| \[Caller Func: [^\]]{{0,100}}\])? \| time \(ms\): ({NUMBER}) \| msg size: ({NUMBER} ?[KMGTP]?B) \|"
)
_STEP = re.compile(r"\bstep=(\d{1,12}), skipped=(\d{1,12}), lr=")
_SPEED = re.compile(rf"\bSamplesPerSec=({NUMBER})|\bCurrSamplesPerSec=({NUMBER})")
_AT = re.compile(r"\bglobal_step=(\d{1,12})\b|\b\d{1,6}/(\d{1,12}), (?=SamplesPerSec=|RunningAvg)")
_PIPELINE = re.compile(rf"\bsteps: (\d{{1,12}}) loss: .{{0,200}}iter time \(s\): ({NUMBER}) samples/sec: ({NUMBER})")
_ITERATION = re.compile(r"\biteration\s+(\d{1,12})/\s*\d{1,12} \|")
_EACH = re.compile(rf"elapsed time per iteration \((ms|s)\): ({NUMBER})")
_RATE = re.compile(rf"\bTFLOPs: ({NUMBER})|flops per GPU: ({NUMBER})\s*TFLOPS|per GPU \(TFLOP/s/GPU\): ({NUMBER})")
_SAMPLES = re.compile(rf"\bsamples(?:/sec| per second): ({NUMBER})")
Row = tuple[object, ...]


class Timers:
    """The lines of timers of one file, numbered by group and rank."""

    def __init__(self) -> None:
        self._samples: Counter[tuple[int | None, str]] = Counter()
        self._head: tuple[str, int | None, int | None] = ("", None, None)
        self.unread = 0

    def rows(self, at: int, line: str) -> list[Row]:
        """The timers of a line, as rows of `deepspeed_times` without the rank."""
        head, _, tail = line.partition(MARK)
        phases, times = [], []
        experts = _OF_EXPERTS.fullmatch(tail) if tail.endswith(")") else None
        for part in experts[1].split(", ") if experts else tail.split(" | "):
            name, _, value = part.rpartition(":")
            phase, took = _phase(name), milliseconds(value)
            if took is None or phase is None:
                self.unread += 1
            else:
                phases.append(phase)
                times.append(took)
        if not phases:
            return []
        if head != self._head[0]:
            self._head = head, rank_of(f"{head}time"), logged_at(head)
        _, rank, logged = self._head
        group = _group(tuple(phases))
        sample = self._samples[rank, group]
        self._samples[rank, group] += 1
        return [
            (at, rank, logged, group, sample, phase, took)
            for phase, took in dict(zip(phases, times, strict=True)).items()
        ]


@lru_cache(maxsize=1024)
def _phase(text: str) -> str | None:
    """A timer by the name that it has since 0.10; None for what is no name."""
    name = text.strip()
    if not _NAME.fullmatch(name):
        return None
    for long, short in _LONG:
        if name == long or name.startswith(f"{long}_"):
            return short + name[len(long) :]
    return name


@lru_cache(maxsize=1024)
def _group(names: tuple[str, ...]) -> str:
    """By the names: Megatron's own lines have a forward and a backward pass too, but no step."""
    if ("fwd" in names or "bwd" in names) and "step" in names:
        return STEP
    if any(name.endswith("_microstep") for name in names):
        return MICRO
    if all(name.startswith("pipe_") for name in names):
        return PIPE
    return OPTIMIZER if all("optimizer_" in name for name in names) else OTHER


def call_row(at: int, line: str) -> Row | None:
    """A call that a verbose comms logger prints, as a row of `deepspeed_comm_calls`."""
    found = _CALL.search(line)
    if found is None:
        return None
    took, much = milliseconds(found[2]), size(found[3])
    if took is None or much is None:
        return None
    return at, rank_of(line), logged_at(line), found[1], much, took


def progress_row(at: int, line: str) -> Row | None:
    """What a line says of the progress, as a row of `deepspeed_progress`."""
    base = (at, rank_of(line), logged_at(line))
    if found := _STEP.search(line):
        return *base, int(found[1]), int(found[2]), None, None, None
    if found := _PIPELINE.search(line):
        took = number(found[2])
        return *base, int(found[1]), None, number(found[3]), None if took is None else ns_of(took, 1e9), None
    if found := _ITERATION.search(line):
        each, rate, samples = _EACH.search(line), _RATE.search(line), _SAMPLES.search(line)
        took = number(each[2]) if each else None
        long = None if took is None or each is None else ns_of(took, 1e6 if each[1] == "ms" else 1e9)
        return *base, int(found[1]), None, number(samples[1]) if samples else None, long, _first(rate)
    at_step, speeds = _AT.search(line), list(_SPEED.finditer(line))
    if at_step is None or not speeds:
        return None
    return *base, int(at_step[1] or at_step[2]), None, _first(speeds[-1]), None, None


def _first(found: re.Match[str] | None) -> float | None:
    """The group that matched, as a number."""
    return next((number(group) for group in found.groups() if group is not None), None) if found else None
