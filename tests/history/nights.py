"""Simulated series of nightly captures, each with what changed in it, and whether the verdict on it is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from traceanalyzer.result.history.entry import Entry, Followed, Part
from traceanalyzer.result.history.trend import Series, series_of
from traceanalyzer.result.history.verdicts import HARDWARE, METHOD, NOISE, REAL
from traceanalyzer.vocabulary.levels import MEDIUM

STEP_NS = 50_000_000
DAY_NS = 86_400_000_000_000
KERNELS = {"gemm": (60.0, 0.5), "layer_norm": (60.0, 0.2), "elementwise": (240.0, 0.2), "softmax": (30.0, 0.1)}
"""Of a step, and which share of its compute time they have."""
IDLE_SHARE = 0.3
Change = Callable[[Entry, float], Entry]


def night(number: int, random: np.random.Generator) -> Entry:
    """A capture without any noise between nights: a step of which the GPU computes seven tenths."""
    compute = round(STEP_NS * (1 - IDLE_SHARE))
    return Entry(
        id=f"{number:04d}-{random.integers(1 << 60):016x}",
        name=f"night-{number}",
        time_ns=1_700_000_000_000_000_000 + number * DAY_NS,
        labels={"commit": f"c{number:04d}", "branch": "main", "host": "node1"},
        tool="1.0",
        format="kineto",
        gpus=["NVIDIA H100 80GB HBM3"],
        gpu_count=1,
        world_size=None,
        versions={"profiler": "PyTorch profiler (Kineto, CUPTI 130001)", "CUDA driver": "13.0", "CUDA": "13.0"},
        settings={},
        headline="",
        unjudged=None,
        damage=[],
        unit="step",
        method="annotation",
        unit_count=10,
        unit_ns=STEP_NS,
        deviation_ns=round(0.003 * STEP_NS),
        launched=sum(count for count, _ in KERNELS.values()),
        gpu_ns=10 * STEP_NS,
        lines={"compute": compute, "idle.host_work": STEP_NS - compute},
        families=[],
        kernels=[Part(name, count, round(share * compute)) for name, (count, share) in KERNELS.items()],
        findings=[],
        judged=["HST001"],
        figures={},
    )


def host_longer(entry: Entry, share: float) -> Entry:
    """The host takes that share of the step more: a function that a commit brought."""
    more = round(share * STEP_NS)
    lines = {**entry.lines, "idle.host_work": entry.lines["idle.host_work"] + more}
    return replace(
        entry, lines=lines, findings=[Followed("HST001", "The host works between launches", MEDIUM, max(more, 0))]
    )


def kernel_longer(entry: Entry, share: float) -> Entry:
    """One kernel takes all of it."""
    more = round(share * STEP_NS)
    first, *others = entry.kernels
    lines = {**entry.lines, "compute": entry.lines["compute"] + more}
    return replace(entry, lines=lines, kernels=[replace(first, ns=first.ns + more), *others])


def more_kernels(entry: Entry, share: float) -> Entry:
    """A layer that runs kernels of its own, which are not there before."""
    more = round(share * STEP_NS)
    lines = {**entry.lines, "compute": max(entry.lines["compute"] + more, 1)}
    if more < 0:
        return replace(kernel_longer(entry, share), launched=(entry.launched or 0) - 60)
    return replace(
        entry, lines=lines, kernels=[*entry.kernels, Part("new", 60.0, more)], launched=(entry.launched or 0) + 60
    )


def slower_gpu(entry: Entry, share: float) -> Entry:
    """All kernels take longer by one factor; nothing says why."""
    factor = 1 + share / (1 - IDLE_SHARE)
    kernels = [replace(one, ns=round(one.ns * factor)) for one in entry.kernels]
    return replace(entry, kernels=kernels, lines={**entry.lines, "compute": round(entry.lines["compute"] * factor)})


def lower_clock(entry: Entry, share: float) -> Entry:
    """The same, with a log that shows the clock."""
    return replace(slower_gpu(entry, share), figures={"gpu_log.clock": 1980 / (1 + share)})


def logged(entry: Entry, _: float) -> Entry:
    """What `lower_clock` is before it."""
    return replace(entry, figures={"gpu_log.clock": 1980.0})


def new_driver(entry: Entry, share: float) -> Entry:
    """Another driver, with which launching takes longer."""
    longer = host_longer(entry, share)
    return replace(longer, versions={**entry.versions, "CUDA driver": "13.1"}, findings=[])


def other_gpu(entry: Entry, share: float) -> Entry:
    """Another model of GPU."""
    return replace(slower_gpu(entry, share), gpus=["NVIDIA H200"])


def other_machine(entry: Entry, share: float) -> Entry:
    """Another machine of the same kind."""
    return replace(slower_gpu(entry, share), labels={**entry.labels, "host": "node2"})


def other_profiler(entry: Entry, share: float) -> Entry:
    """A new version of the profiler, which costs the host more."""
    versions = {**entry.versions, "profiler": "PyTorch profiler (Kineto, CUPTI 130100)"}
    return replace(host_longer(entry, share), versions=versions, findings=[])


def other_marks(entry: Entry, share: float) -> Entry:
    """Steps that are found by repetition now."""
    return replace(host_longer(entry, share), method="repetition", findings=[])


def other_format(entry: Entry, share: float) -> Entry:
    """Another profiler altogether."""
    return replace(host_longer(entry, share), format="nsys", findings=[])


@dataclass(frozen=True)
class Case:
    """A series of `nights`, that from `change_at` on takes `share` more; `spread` is the noise between nights, of one of `NOISES`."""

    name: str
    verdict: str | None
    share: float
    change: Change | None = None
    before: Change | None = None
    noise: str = "normal"
    spread: float = 0.005
    nights: int = 40
    change_at: int = 25


def _normal(random: np.random.Generator, count: int) -> np.ndarray:
    return random.normal(0, 1, count)


def _heavy(random: np.random.Generator, count: int) -> np.ndarray:
    return random.standard_t(3, count) / np.sqrt(3)


def _skewed(random: np.random.Generator, count: int) -> np.ndarray:
    return random.exponential(1, count) - 1


def _alike(random: np.random.Generator, count: int) -> np.ndarray:
    found = random.normal(0, 1, count)
    for at in range(1, count):
        found[at] = 0.4 * found[at - 1] + np.sqrt(1 - 0.16) * found[at]
    return found


def _with_noisy_nights(random: np.random.Generator, count: int) -> np.ndarray:
    found = random.normal(0, 1, count)
    found[np.arange(4, count, 11)] += 20
    return found


NOISES = {"normal": _normal, "heavy": _heavy, "skewed": _skewed, "alike": _alike, "noisy": _with_noisy_nights}


def _cases() -> Iterator[Case]:
    for noise in NOISES:
        yield Case(f"steady, {noise}", None, 0.0, noise=noise, spread=0.01)
    for change in (host_longer, kernel_longer, more_kernels):
        for share in (0.01, 0.03, 0.08, 0.2, -0.05):
            spread, noise = min(0.01, abs(share) / 2.5), list(NOISES)[round(abs(share) * 100) % 5]
            yield Case(f"{change.__name__} {share:+}", REAL, share, change, noise=noise, spread=spread)
    yield Case("new driver", HARDWARE, 0.03, new_driver)
    yield Case("other GPU", HARDWARE, -0.2, other_gpu)
    yield Case("clock", HARDWARE, 0.05, lower_clock, logged, noise="heavy")
    yield Case("neighbour", HARDWARE, 0.04, slower_gpu, noise="alike")
    yield Case("other machine", HARDWARE, 0.02, other_machine)
    yield Case("profiler", METHOD, 0.1, other_profiler, noise="skewed")
    yield Case("marks", METHOD, 0.02, other_marks)
    yield Case("format", METHOD, 0.15, other_format, noise="noisy")
    yield Case("one noisy night", NOISE, 0.12)
    yield Case("a noisy last night", NOISE, 0.15, change_at=39)


CASES = list(_cases())


def entries_of(case: Case, seed: int) -> list[Entry]:
    """The captures of a case."""
    random = np.random.default_rng([seed, *case.name.encode()])
    off = NOISES[case.noise](random, case.nights) * case.spread
    found = []
    for number in range(case.nights):
        entry = night(number, random)
        since = number == case.change_at if case.verdict == NOISE else number >= case.change_at
        if case.before and not since:
            entry = case.before(entry, case.share)
        if case.change and since:
            entry = case.change(entry, case.share)
        if case.verdict == NOISE and since:
            entry = host_longer(entry, case.share)
        found.append(_noisy(entry, float(off[number]), random))
    return found


def _noisy(entry: Entry, off: float, random: np.random.Generator) -> Entry:
    """The entry, all of it longer by a share, and each kernel a little of its own."""
    lines = {name: round(ns * (1 + off)) for name, ns in entry.lines.items()}
    kernels = [replace(one, ns=round(one.ns * (1 + off) * (1 + random.normal(0, 0.002)))) for one in entry.kernels]
    return replace(entry, lines=lines, kernels=kernels, unit_ns=sum(lines.values()))


def is_right(case: Case, series: Series) -> bool:
    """Whether what is said of the series is what was done to it: the one change, in its night or one beside, and no other."""
    shifts = [shift for shift in series.shifts if shift.verdict != NOISE]
    changed = series.captures[case.change_at] if case.change_at < len(series.captures) else None
    if case.verdict is None:
        return not shifts
    if case.verdict == NOISE:
        told = [*series.noisy, *(shift.after for shift in series.shifts if shift.verdict == NOISE)]
        return not shifts and changed in told
    if len(shifts) != 1 or shifts[0].verdict != case.verdict:
        return False
    return abs(series.captures.index(shifts[0].after) - case.change_at) <= 2


def judged(case: Case, seed: int) -> Series:
    """What is said of a case."""
    return series_of(entries_of(case, seed))
