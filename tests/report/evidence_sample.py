"""A made-up section of evidence: memory by owner over time, its owners as a table, a flame graph of the peak, and a lane."""

from __future__ import annotations

from report_sample import HOSTILE, ORIGIN

from traceanalyzer.result.sections import Flame, Grid, Lane, Levels, Mark, Point, Scatter, Section, Words

MIB = 2**20


def levels(points: int = 2_000, owners: int = 8) -> Levels:
    """Owners that grow with steps; the highest sum is at the marked moment."""
    times = [1_000_000 * at for at in range(points)]
    series = [
        (
            HOSTILE if owner == 7 else f"owner {owner} (model.py:{owner})",
            [MIB * (100 + owner + at * owner % 37) for at in range(points)],
        )
        for owner in range(owners)
    ]
    sums = [sum(values) for values in zip(*(values for _, values in series), strict=True)]
    peak = sums.index(max(sums))
    step = points // 4
    spans = [Mark(times[at], times[min(at + step, points - 1)], f"step {at // step}") for at in range(0, points, step)]
    return Levels("Memory by owner", "bytes", times, series, [Mark(times[peak], times[peak], "peak")], spans)


def flame() -> Flame:
    paths = [
        (("train.py:10 main", "model.py:33 forward", "attention.py:7 scores"), 900 * MIB),
        (("train.py:10 main", "model.py:33 forward", HOSTILE), 300 * MIB),
        (("train.py:10 main", "optimizer.py:5 step"), 400 * MIB),
        (("train.py:10 main", "loss.py:3 logits", "loss.py:9 softmax"), 700 * MIB),
    ]
    return Flame("Who owns the peak", "bytes", paths)


def grid(rows: int = 3) -> Grid:
    values = [
        [f"owner {at}" if at else HOSTILE, (rows - at) * 3 * MIB, at, at / 10, 1_000 * at if at != 1 else None]
        for at in range(rows)
    ]
    columns = [("owner", "text"), ("held", "bytes"), ("blocks", "count"), ("share", "share"), ("lives", "ns")]
    return Grid("Owners at the peak", columns, values)


def scatter(points: int = 40) -> Scatter:
    """A roofline: kernels by intensity under the roofs of memory and of two precisions."""
    kernels = [
        Point(HOSTILE if at == 1 else f"kernel {at}", 2.0 ** (at % 12), 3.0 * 1.2**at, 1e6 * (points - at))
        for at in range(points)
    ]
    lines = [
        ("bf16: 989 TFLOP/s, memory: 3.35 TB/s", [(0.5, 1.7), (295.0, 989.0), (4096.0, 989.0)]),
        ("fp32: 67 TFLOP/s", [(20.0, 67.0), (4096.0, 67.0)]),
    ]
    return Scatter("Roofline", "FLOP per byte", "TFLOP/s", kernels, lines)


def section(rows: int = 30, order: int = 35) -> Section:
    words = Words(f"The peak is owned by `attention.py:7`, {HOSTILE} says.")
    blocks = [words, levels(), grid(rows), flame(), scatter()]
    lane = Lane(
        0,
        0,
        "snapshot: allocated",
        "bytes",
        [ORIGIN + 1_000_000, ORIGIN + 6_000_000, ORIGIN + 20_000_000],
        [MIB, 5 * MIB, 2 * MIB],
    )
    return Section("memory-snapshot", "Memory", blocks, [lane], order)
