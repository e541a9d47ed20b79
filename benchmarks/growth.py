"""How time and memory grow with the input, dimension by dimension: each is run at three sizes, and the exponent is fitted.

    python -m benchmarks.growth [NAME...]     some dimensions of `growing.DIMENSIONS`, or all

An exponent of 1 is proportion to the input, 2 its square. What the smallest trace takes is taken off before, and what then stays below
a floor is not judged. Prints figures and asserts nothing.
"""

from __future__ import annotations

import math
import resource
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.growing import DIMENSIONS, Dimension, events
from benchmarks.measure import Cost, cost_of

TOOL = (sys.executable, "-m", "traceanalyzer")
SHARES = (0.25, 0.5, 1.0)
MOST = 1.1
# What lies below such a share of what the smallest trace takes is noise, and hides behind what every run takes.
FLOOR = 0.5
# Nothing here may take a machine down.
LIMITS = {resource.RLIMIT_AS: 12 << 30, resource.RLIMIT_CPU: 120}


def growth(folder: Path, names: Sequence[str] = ()) -> None:
    """Print the exponents of CPU time and of peak memory for each dimension."""
    base = _costs(folder, Dimension(events(lambda n: iter(())), 1), 1)
    print("Growth: exponents of CPU time and peak memory over the size, and both at the largest size")
    for name in names or DIMENSIONS:
        dimension = DIMENSIONS[name]
        sizes = [max(int(dimension.most * share), 1) for share in SHARES]
        runs = [_costs(folder, dimension, size) for size in sizes]
        for command, floor in base.items():
            costs = [run[command] for run in runs]
            seconds = _exponent(sizes, [cost.cpu - floor.cpu for cost in costs], FLOOR * floor.cpu)
            memory = _exponent(sizes, [cost.memory - floor.memory for cost in costs], FLOOR * floor.memory)
            missed = any(cost.failed for cost in costs) or max(seconds or 0, memory or 0) > MOST
            print(
                f"  {name:<22}{command:<8} time {_shown(seconds)}  memory {_shown(memory)}  {sizes[-1]:>12,}:"
                f"{costs[-1].cpu:7.1f} s{costs[-1].memory:8.0f} MiB{'  FAILED' * costs[-1].failed}{'  MISSED' * missed}",
                flush=True,
            )


def _costs(folder: Path, dimension: Dimension, size: int) -> dict[str, Cost]:
    """What reading and what the whole way to a page cost."""
    place = Path(tempfile.mkdtemp(dir=folder))
    trace = place / "trace.json"
    dimension.write(trace, size)
    commands = {
        "ingest": ("ingest", str(trace), "-o", str(place / "store")),
        "report": ("report", str(trace), "-o", str(place / "page.html")),
    }
    costs = {name: cost_of(*TOOL, *command, limits=LIMITS) for name, command in commands.items()}
    shutil.rmtree(place)
    return costs


def _exponent(sizes: Sequence[int], values: Sequence[float], floor: float) -> float | None:
    """Of the power of the size that fits the values best; None where the largest is below the floor."""
    if values[-1] < floor:
        return None
    # What lies below the floor counts as that: noise must not make a slope.
    points = [(math.log(size), math.log(max(value, floor))) for size, value in zip(sizes, values, strict=True)]
    points = [p for p, value in zip(points, values, strict=True) if value >= floor] or points
    if len(points) < 2:
        points = [(math.log(sizes[-2]), math.log(max(values[-2], floor))), points[-1]]
    x, y = (sum(column) / len(points) for column in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def _shown(exponent: float | None) -> str:
    return "   -" if exponent is None else f"{exponent:4.2f}"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        growth(Path(folder), sys.argv[1:])


if __name__ == "__main__":
    main()
